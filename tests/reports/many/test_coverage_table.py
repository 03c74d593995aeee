"""Cells of coverage: what took effect, what did not, what is missing, and what cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.targets import Target, follower_of, group_coordinator, leader_of, minority, some_brokers
from reports.many.coverage_table import MODE, TARGET, CoverageCell, CoverageTable, coverage_table
from reports.many.exercised import blows, faults_of, target_text
from reports.model import RunReport
from tests.reports.many.sample_night import sample_night, scenarios

NAMES = [each.name for each in scenarios()]
POSSIBLE = frozenset({("kill", MODE, "exactly_once"), ("wipe_disk", MODE, "exactly_once"), ("kill", TARGET, "leader"),
                      ("flip_bits", MODE, "at_least_once")})  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[RunReport]:
    """A night whose slow disk under at-least-once had no effect, and whose kill under exactly-once lost messages."""
    root = tmp_path_factory.mktemp("night")
    _, made = sample_night(root, broken={NAMES[4]: {"lost": 3}}, quiet={NAMES[7]})
    return [RunReport.read(run) for run in made]


def cell(table: CoverageTable, fault: str, value: str) -> CoverageCell:
    return next(each for each in table.cells if (each.fault, each.value) == (fault, value))


def test_the_sample_is_what_the_tests_think(runs: list[RunReport]) -> None:
    assert "exactly_once-kill" in NAMES[4]
    assert "at_least_once-slow_disk" in NAMES[7]
    assert [run.scenario for run in runs] == NAMES


def test_cells_count_runs_and_effects(runs: list[RunReport]) -> None:
    table = coverage_table(runs, MODE, POSSIBLE, {})
    assert [value for value, _ in table.rows] == ["at_most_once", "at_least_once", "exactly_once"]
    found = cell(table, "sever", "exactly_once")
    assert (found.exercised, found.bit, found.kind) == (1, 1, "covered")
    quiet = cell(table, "slow_disk", "at_least_once")
    assert (quiet.exercised, quiet.bit, quiet.kind) == (1, 0, "no effect")
    assert cell(table, "pause", "at_least_once").kind == "no effect", "both windows of the run"
    assert cell(table, "kill", "exactly_once").kind == "violated"
    assert "promise violated" in cell(table, "kill", "exactly_once").sentence


def test_gaps_are_what_could_be_drawn_and_took_no_effect(runs: list[RunReport]) -> None:
    covered = {("flip_bits", MODE, "at_least_once"): 4, ("kill", MODE, "exactly_once"): 3}
    table = coverage_table(runs, MODE, POSSIBLE, covered)
    gaps = [(each.fault, each.value, each.before) for each in table.gaps]
    assert gaps == [
        ("pause", "at_least_once", 0),
        ("slow_disk", "at_least_once", 0),
        ("wipe_disk", "exactly_once", 0),
        ("flip_bits", "at_least_once", 4),
    ]
    assert cell(table, "wipe_disk", "exactly_once").sentence == "not run this night, nor in a night before"
    assert cell(table, "wipe_disk", "at_least_once").kind == "never"
    assert cell(table, "kill", "exactly_once").before == 2, "without the run of this night"
    assert table.possible - table.covered == len(gaps)


def test_runs_without_faults_count_if_they_prove_something(runs: list[RunReport]) -> None:
    table = coverage_table(runs, MODE, (), {})
    assert table.faults[-1] == "none"
    assert cell(table, "none", "exactly_once").bit == 1
    unproven = [replace(run, verdict="INCONCLUSIVE") for run in runs]
    assert cell(coverage_table(unproven, MODE, (), {}), "none", "exactly_once").bit == 0


def test_targets_are_named_as_in_the_windows(runs: list[RunReport]) -> None:
    table = coverage_table(runs, TARGET, POSSIBLE, {})
    assert {value for value, _ in table.rows} == {"leader", "follower"}
    assert {window.target for run in runs for window in run.windows} == {"leader", "follower"}


@pytest.mark.parametrize(
    "target", [leader_of(0), leader_of(1), follower_of(0), minority(2), some_brokers(1, 3), group_coordinator()], ids=str
)  # fmt: skip
def test_a_described_target_has_the_text_of_the_target(target: Target) -> None:
    assert target_text(dict(target.describe())) == str(target)


def test_planned_faults_of_a_run_that_never_began_have_no_effect(runs: list[RunReport]) -> None:
    crashed = replace(runs[-1], windows=())
    assert faults_of(crashed) == ["slow_disk", "pause"]
    assert not any(blow.bit for blow in blows(crashed))


def test_settings_that_are_no_schedule_are_no_error(runs: list[RunReport]) -> None:
    odd = replace(runs[-1], settings={"schedule": [3, {"fault": 1, "on": []}, {}]}, windows=())
    assert [blow.fault for blow in blows(odd)] == ["unknown", "unknown"]
