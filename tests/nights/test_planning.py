"""The list of a night follows from its seed alone: here, in another process, and under CI=1."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import strategies as st

from harness.contracts import Mode
from harness.nights.coverage import combinations
from harness.nights.plan import Plan
from suites.nights import planning
from suites.nights.choices import (
    ALONE,
    ENDS_A_BROKER,
    MILD,
    PIPELINES,
    WORKERS,
    WORKLOADS,
    blows,
    possible_pairs,
)
from suites.nights.drawing import drawn
from suites.nights.planning import canaries, planned, steered_seed

ROOT = Path(__file__).parents[2]
PLAN = planned(11, 40)


def in_another_process(*words: str, **environment: str) -> dict[str, object]:
    command = [sys.executable, "-m", "harness.cli", "nightly", "--list", "--json", *words]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, timeout=300, check=True
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_the_same_seed_gives_the_same_list_even_in_ci() -> None:
    expected = json.loads(json.dumps(planned(11, 3).as_data()))
    for environment in ({"CI": "1"}, {"CI": "", "PYTHONHASHSEED": "5", "HYPOTHESIS_PROFILE": "ci"}):
        assert in_another_process("--seed", "11", "--minutes", "3", **environment) == expected


def test_at_most_once_is_drawn_without_acks() -> None:
    """Its promise is about acks=0: with acks=all librdkafka wrote a batch twice in a night."""
    every = [each for each in PLAN.scenarios if each.name != PLAN.canary]
    assert {each.producers.acks for each in every if each.mode is Mode.AT_MOST_ONCE} == {None}
    assert {each.producers.acks for each in every if each.mode is Mode.AT_LEAST_ONCE} == {None, "all"}


def test_another_seed_gives_another_list() -> None:
    assert planned(12, 3).scenarios != planned(11, 3).scenarios


def test_a_seed_is_not_ignored_by_a_derandomised_profile() -> None:
    every = st.integers(0, 10**6)
    assert drawn(every, "a", 20) == drawn(every, "a", 20)
    assert drawn(every, "a", 20) != drawn(every, "b", 20)
    assert drawn(every, "a", 5) == drawn(every, "a", 20)[:5]


def test_a_plan_comes_back_from_its_data() -> None:
    assert Plan.of(json.loads(json.dumps(PLAN.as_data()))) == PLAN


def test_a_plan_fills_its_time_and_has_one_canary() -> None:
    names = [each.name for each in PLAN.scenarios]
    assert len(set(names)) == len(names) > 40
    assert [each.name for each in PLAN.scenarios if each.control] == [PLAN.canary]
    assert names.index(PLAN.canary) < len(names) / 2
    assert len({each.seed for each in PLAN.scenarios}) == len(names)
    assert all(each.name.startswith("night-11-") for each in PLAN.scenarios), "a canary is hidden"


def test_a_long_night_has_every_mode_workload_and_shape() -> None:
    every = PLAN.scenarios
    assert {each.mode for each in every} == set(Mode)
    assert {each.workload for each in every} == set(WORKLOADS)
    counts = {len(each.schedule) for each in every}
    assert {0, 1, 2, 3} <= counts
    together = [each for each in every if len(each.schedule) > 1 and _overlaps(each)]
    in_sequence = [each for each in every if len(each.schedule) > 1 and not _overlaps(each)]
    assert together
    assert in_sequence


def _overlaps(scenario: object) -> bool:
    windows = scenario.schedule  # type: ignore[attr-defined]
    return any(one.end_s > other.start_s for one, other in itertools.pairwise(windows))


def test_overlapping_faults_take_at_most_one_broker_away() -> None:
    for each in PLAN.scenarios:
        if each.control or not _overlaps(each):
            continue
        names = [str(window.fault.describe()["fault"]) for window in each.schedule]
        assert not set(names) & ALONE, each.name
        assert sum(name not in MILD | WORKERS for name in names) <= 1, each.name
        if set(names) & ENDS_A_BROKER:
            assert set(names) & MILD <= {"slow_link"}, each.name


def test_every_mode_and_workload_has_faults_that_it_survives() -> None:
    for workload, modes in WORKLOADS.items():
        for mode in modes:
            found = blows(mode, workload)
            assert len({blow.name for blow in found}) > 8
            if workload in PIPELINES:
                assert not [blow for blow in found if blow.role == "consumer"]


def test_canaries_need_no_special_cluster() -> None:
    assert {each.hazard for each in canaries()} >= {"acks0_loss", "acks1_failover"}
    assert all(each.requires for each in canaries())


def test_a_seed_is_steered_to_what_is_not_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed whose list is covered already is not taken."""
    first, second = planned(1, 2), planned(2, 2)
    monkeypatch.setattr(planning, "planned", lambda seed, _: first if seed == 1 else second)

    covered = {each for scenario in first.scenarios for each in combinations(scenario)}
    assert steered_seed(2, covered, [1, 2]) == 2
    assert (
        steered_seed(2, {each for scenario in second.scenarios for each in combinations(scenario)}, [1, 2])
        == 1
    )
    assert steered_seed(2, (), [2, 1]) == 2


def test_possible_have_every_fault_with_a_case() -> None:
    faults = {value for each in possible_pairs() for dimension, value in each if dimension == "fault"}
    assert {"kill", "sever", "slow_disk", "kill_worker", "delete_records", "power_loss"} <= faults
