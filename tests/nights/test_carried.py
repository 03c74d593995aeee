"""Findings of earlier nights run first in the next one, with the same scenario data; a seed given explicitly stays as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from faults.kill import Kill
from faults.wipe_disk import WipeDisk
from harness.cli import main
from harness.contracts import Mode
from harness.nights.carried import LAST_NIGHTS, FoundBefore, found_lately
from harness.nights.journal import FILE, NIGHTS, NightJournal, NightState, nights
from harness.nights.plan import Plan, expected_s
from harness.scenario import Scenario
from harness.schedule import Window
from harness.targets import leader_of, majority
from suites.nights.choices import is_promised
from suites.nights.planning import on_releases, planned, with_carried

PLAN = planned(11, 4)
OTHER = planned(12, 4)


def first_of(plan: Plan, number: int = 0) -> Scenario:
    """Return a scenario of the plan that is not its canary."""
    return [each for each in plan.scenarios if not each.control][number]


def night(plan: Plan, *found: Scenario, kafka: str = "") -> NightState:
    state = NightState(plan)
    for each in found:
        state.apply(
            {"event": "executed", "scenario": each.name, "run_dir": "/x", "seconds": 1, "kafka": kafka}
        )
        facts = {"verdict": "VIOLATED", "anomalies": {"lost": 1}, "bitten": [], "run_dir": "/x"}
        state.apply({"event": "judged", "scenario": each.name, "standing": "promise violated", **facts})
    return state


def as_drawn(scenario: Scenario) -> Scenario:
    return replace(scenario, name="x")


def test_a_found_scenario_is_first_in_the_next_night() -> None:
    scenario = first_of(PLAN)
    plan = with_carried(OTHER, found_lately([night(PLAN, scenario)]))
    carried, *rest = plan.scenarios
    assert tuple(rest) == OTHER.scenarios
    assert as_drawn(carried) == as_drawn(scenario), "the seed stays, too"
    assert carried.name.startswith(f"night-12-again-01-{scenario.mode}-")
    assert plan.carried == {carried.name: scenario.name}
    assert plan.canary == OTHER.canary
    assert Plan.of(json.loads(json.dumps(plan.as_data()))) == plan


def test_a_night_without_findings_adds_nothing() -> None:
    assert with_carried(OTHER, found_lately([night(PLAN)])) == OTHER


def test_a_scenario_that_is_found_again_is_carried_once_under_its_first_name() -> None:
    scenario = first_of(PLAN)
    second = with_carried(OTHER, found_lately([night(PLAN, scenario)]))
    found = found_lately([night(second, second.scenarios[0]), night(PLAN, scenario)])
    assert [each.name for each in found] == [scenario.name]


def test_findings_of_old_nights_are_not_carried() -> None:
    old = night(PLAN, first_of(PLAN))
    assert found_lately([*[night(OTHER)] * (LAST_NIGHTS - 1), old])
    assert not found_lately([*[night(OTHER)] * LAST_NIGHTS, old])


def test_carried_scenarios_take_at_most_a_quarter_of_the_night() -> None:
    every = [each for each in planned(3, 30).scenarios if not each.control]
    plan = with_carried(planned(4, 20), [FoundBefore(each, each.name) for each in every])
    used_s = sum(expected_s(each) for each in plan.scenarios[: len(plan.carried)])
    assert 0 < used_s <= 20 * 60 / 4
    short = with_carried(replace(OTHER, minutes=0.1), [FoundBefore(each, each.name) for each in every])
    assert len(short.carried) == 1, "one is always carried"


def test_what_is_not_promised_any_more_is_not_carried() -> None:
    scenario = first_of(PLAN)
    both = (Window(WipeDisk(), leader_of(0), 0.5, 2.0), Window(Kill(), leader_of(0), 1.0, 2.0))
    for wrong in (
        replace(scenario, schedule=(Window(Kill(), majority(), 0.5, 2.0),)),
        replace(scenario, mode=Mode.AT_LEAST_ONCE, workload="produce_consume", schedule=both),
        replace(scenario, mode=Mode.IDEMPOTENT, workload="dead_letters", schedule=()),
    ):
        assert not is_promised(wrong)
        assert with_carried(OTHER, [FoundBefore(wrong, "wrong")]) == OTHER


def test_everything_drawn_is_promised() -> None:
    for each in planned(13, 40).scenarios:
        assert is_promised(each) or each.control, each.name


def test_a_carried_scenario_runs_on_the_release_on_which_it_was_found() -> None:
    plan = on_releases(OTHER, ["4.3.1", "3.9.2"])
    next_one = plan.kafka[plan.scenarios[0].name]
    (other,) = {"4.3.1", "3.9.2"} - {next_one}
    found = [
        FoundBefore(first_of(PLAN), "a", next_one),
        FoundBefore(first_of(PLAN, 1), "b", other),
        FoundBefore(first_of(PLAN, 2), "c", "2.8.0"),
    ]
    carried = with_carried(replace(plan, minutes=60.0), found)
    order = [(carried.carried[each.name], carried.kafka[each.name]) for each in carried.scenarios[:3]]
    assert order == [("b", other), ("a", next_one), ("c", next_one)], "clusters change rarely"
    assert with_carried(OTHER, found).kafka == {}, "a night with one release uses that one"


@pytest.fixture
def runs_with_a_finding(tmp_path: Path) -> Path:
    journal = NightJournal.begin(tmp_path, PLAN)
    name = first_of(PLAN).name
    journal.write("executed", scenario=name, run_dir="/x", seconds=1, kafka="4.3.1")
    journal.write(
        "judged",
        scenario=name,
        verdict="VIOLATED",
        standing="promise violated",
        anomalies={"lost": 1},
        bitten=[],
        run_dir="/x",
    )
    broken = tmp_path / NIGHTS / "99999999"
    broken.mkdir()
    (broken / FILE).write_text('{"event": "night", "carried": 7, "scenarios": []}\n')
    return tmp_path


def test_journals_are_read_from_the_newest_and_unreadable_ones_skipped(runs_with_a_finding: Path) -> None:
    assert [state.plan.seed for state in nights(runs_with_a_finding)] == [11]


@pytest.mark.parametrize(
    ("words", "carried"),
    [((), 1), (("--no-carry",), 0), (("--seed", "11"), 0), (("--seed", "11", "--no-carry"), 0)],
)
def test_only_a_list_without_seed_begins_with_findings(
    words: tuple[str, ...], carried: int, runs_with_a_finding: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nightly", "--list", "--minutes", "1", "--runs", str(runs_with_a_finding), *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    marked = [line for line in lines if line.endswith(f"  {first_of(PLAN).name}")]
    assert len(marked) == carried
    assert lines[-1].endswith(", 1 found by earlier nights") == bool(carried)
    if carried:
        assert lines[1] == marked[0], "it is the first one"
