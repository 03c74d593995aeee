"""Findings with one anomaly, the same faults and the same client are one group, with its rate and its history."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.statistics.rates import Rate
from harness.trends.differences import FindingGroup, differences
from reports.many.finding_groups import WORST, groups_of
from reports.many.night import Minimised, Night
from reports.model import Reason, Report, RunReport
from tests.reports.many.sample_night import sample_night, scenarios
from tests.reports.many.sample_trends import night_before, rows_of

NAMES = [each.name for each in scenarios()]
KILLED = FindingGroup("lost", "kill", "confluent")


def report_of(runs: list[RunReport], **more: object) -> Report:
    return Report("t", "", 7, {}, None, None, tuple(runs), **more)  # type: ignore[arg-type]


def night_of(root: Path, broken: dict[str, dict[str, int]]) -> list[RunReport]:
    return [RunReport.read(run) for run in sample_night(root, broken=broken)[1]]


def test_runs_with_one_cause_are_one_group_and_the_canary_is_none(tmp_path: Path) -> None:
    runs = night_of(tmp_path, {NAMES[3]: {"lost": 5}, NAMES[4]: {"lost": 9}, NAMES[7]: {"reordered": 2}})
    groups = groups_of(report_of(runs))
    assert [(each.group, each.count) for each in groups] == [
        (KILLED, 14),
        (FindingGroup("reordered", "pause + slow_disk", "confluent"), 2),
    ]
    assert [(run.scenario, count) for _, run, count in groups[0].runs] == [(NAMES[4], 9), (NAMES[3], 5)]
    assert groups[0].rate == Rate(2, 2), "the canary had a kill too, and is not counted"
    assert groups[0].state == "", "without a store nothing is new"


def test_another_client_is_another_group(tmp_path: Path) -> None:
    runs = night_of(tmp_path, {NAMES[3]: {"lost": 5}, NAMES[4]: {"lost": 9}})
    runs[4] = replace(runs[4], settings={**runs[4].settings, "client": "java"})
    assert {each.group.client for each in groups_of(report_of(runs))} == {"confluent", "java"}


def test_only_the_worst_runs_are_linked(tmp_path: Path) -> None:
    run = night_of(tmp_path, {NAMES[3]: {"lost": 5}})[3]
    many = [
        replace(run, path=run.path / str(n), violations=(Reason("lost", n, ""),)) for n in range(1, WORST + 4)
    ]
    (group,) = groups_of(report_of(many))
    assert [count for _, _, count in group.worst] == [8, 7, 6, 5, 4]


def test_what_a_control_requires_is_no_finding(tmp_path: Path) -> None:
    runs = night_of(tmp_path, {})
    canary = runs[2]
    odd = replace(canary, violations=(*canary.violations, Reason("phantom", 1, "")),
                  requirement=replace(canary.requirement, shortfalls=()), expected="HELD")  # fmt: skip
    (group,) = groups_of(report_of([odd]))
    assert group.group.anomaly == "phantom"


def test_a_store_says_what_is_new_and_what_is_known(tmp_path: Path) -> None:
    _, made = sample_night(tmp_path, broken={NAMES[3]: {"lost": 5}, NAMES[7]: {"reordered": 2}})
    rows = rows_of("tonight", made)
    before = [row for night in (1, 2) for row in night_before(rows, night, broken=3 if night == 2 else -1)]
    known = differences([*rows, *before], session="tonight")
    groups = groups_of(report_of([RunReport.read(run) for run in made], differences=known))
    assert [(each.group.anomaly, each.state) for each in groups] == [("reordered", "new"), ("lost", "known")]
    assert groups[1].history is not None
    assert groups[1].history.before.found == 1


def test_replays_and_the_smallest_test_belong_to_the_group(tmp_path: Path) -> None:
    runs = night_of(tmp_path, {NAMES[3]: {"lost": 5}, NAMES[4]: {"lost": 9}})
    small = Minimised(True, True, 1, (), Rate(3, 3), "def test(): ...")
    large = replace(small, faults=2, test="larger")
    night = Night("n", 7, 10.0, 1.0, 9, True, NAMES[2], True, tmp_path,
                  replayed={NAMES[3]: Rate(1, 2), NAMES[4]: Rate(2, 2)},
                  minimised={NAMES[3]: large, NAMES[4]: small})  # fmt: skip
    (group,) = groups_of(report_of(runs, night=night))
    assert group.replayed == Rate(3, 4)
    assert group.minimised is small
