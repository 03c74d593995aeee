"""Coverage counts pairs and triples of what runs exercised, on which release, and where the fault took effect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from faults.kill import Kill
from faults.pause import Pause
from harness.contracts import Mode
from harness.nights.coverage import (
    Exercised,
    PairCoverage,
    combinations,
    combined,
    described,
    share_of_new,
    text,
    with_fault,
)
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import follower_of, leader_of
from suites.nights import planning
from suites.nights.choices import WORKLOADS, blows, possible
from suites.nights.planning import planned, steered_seed

KILLED = Scenario(name="x", mode=Mode.AT_LEAST_ONCE, schedule=once(Kill(), on=leader_of(0)))
ELSEWHERE = replace(KILLED, schedule=once(Kill(), on=follower_of(0)))
TRIPLE = combined(("mode", "at_least_once"), ("fault", "kill"), ("target", "leader"))


def test_a_run_exercises_the_three_triples_of_each_fault() -> None:
    found = {each for each in combinations(KILLED) if len(each) == 3}
    assert {text(each) for each in found} == {
        "fault kill x mode at_least_once x target leader",
        "fault kill x mode at_least_once x workload produce_consume",
        "fault kill x target leader x workload produce_consume",
    }


def test_triples_are_counted_beside_pairs_and_only_if_the_fault_took_effect() -> None:
    drawable = with_fault("at_least_once", "produce_consume", "kill", "leader")
    for bitten, left in ((True, 0), (False, 3)):
        data = described([Exercised(KILLED, [bitten])], drawable)["triples"]
        assert (data["exercised"], data["possible_with_faults"], data["uncovered_with_faults"]) == (
            3,
            3,
            left,
        )
        assert data["triples"][text(TRIPLE)] == {"exercised": 1, "bit": int(bitten)}
    data = described([Exercised(KILLED, [True])], drawable)
    assert {name.count(" x ") for name in data["pairs"]} == {1}


def test_the_release_of_the_brokers_is_a_dimension() -> None:
    found = PairCoverage.of([Exercised(KILLED, [True], kafka="3.9.2"), Exercised(KILLED, [True])]).bit
    assert found[combined(("fault", "kill"), ("kafka", "3.9.2"))] == 1
    assert found[combined(("kafka", "3.9.2"), ("mode", "at_least_once"))] == 1
    assert not [each for each in combinations(KILLED) for name, _ in each if name == "kafka"]


def test_a_scenario_with_a_new_triple_has_more_that_is_new() -> None:
    covered = combinations(KILLED) | combinations(ELSEWHERE)
    covered |= combinations(replace(KILLED, mode=Mode.IDEMPOTENT, schedule=()))
    covered |= combinations(replace(KILLED, mode=Mode.IDEMPOTENT, schedule=once(Pause(), on=leader_of(0))))
    crossed = replace(KILLED, mode=Mode.IDEMPOTENT)
    pairs = {each for each in combinations(crossed) if len(each) == 2}
    assert {text(each) for each in pairs - covered} == {"fault kill x mode idempotent"}
    assert share_of_new(crossed, covered | pairs) > 0, "its triples are new"
    assert share_of_new(KILLED, covered) == 0


def test_a_seed_is_steered_by_triples_too(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = planned(1, 2), planned(2, 2)
    monkeypatch.setattr(planning, "planned", lambda seed, _: first if seed == 1 else second)
    every = {each for plan in (first, second) for one in plan.scenarios for each in combinations(one)}
    new = next(
        each for each in every if len(each) == 3 and not any(each in combinations(s) for s in first.scenarios)
    )
    assert steered_seed(2, every - {new}, [1, 2]) == 2


def test_every_triple_that_can_be_drawn_is_known() -> None:
    triples = {each for each in possible() if len(each) == 3}
    for plan in (planned(11, 20), planned(12, 20)):
        for scenario in plan.scenarios:
            if not scenario.control:
                assert {each for each in combinations(scenario) if len(each) == 3} <= triples, scenario.name
    most = sum(3 * len(blows(mode, workload)) for workload, modes in WORKLOADS.items() for mode in modes)
    assert 300 < len(triples) <= most
