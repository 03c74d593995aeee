"""Findings of many runs by anomaly, faults and client: one group for what probably has one cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.statistics.rates import Rate
from harness.trends.differences import Differences, FindingGroup, GroupHistory, GroupState
from harness.trends.row import fault_text
from reports.files import text
from reports.many.exercised import faults_of
from reports.many.night import Minimised
from reports.model import INCONCLUSIVE, Report, RunReport, Standing

WORST = 5  # runs that are linked
Placed = tuple[int, RunReport, int]  # number on the page, run, findings


@dataclass(frozen=True)
class GroupOfFindings:
    """The runs that show one anomaly under the same faults with the same client, worst first."""

    group: FindingGroup
    runs: tuple[Placed, ...]
    rate: Rate  # of the conclusive runs with these faults and this client
    history: GroupHistory | None = None  # None without a store of earlier sessions
    replayed: Rate | None = None
    minimised: Minimised | None = None

    @property
    def count(self) -> int:
        return sum(count for _, _, count in self.runs)

    @property
    def worst(self) -> tuple[Placed, ...]:
        return self.runs[:WORST]

    @property
    def state(self) -> str:
        return str(self.history.state) if self.history is not None else ""


def groups_of(report: Report) -> list[GroupOfFindings]:
    """Return the groups of all runs that broke a promise: new ones first, then those with the most runs."""
    members: dict[FindingGroup, list[Placed]] = {}
    histories: dict[FindingGroup, GroupHistory] = {}
    for place, run in enumerate(report.runs, 1):
        if run.standing is not Standing.BROKEN:
            continue
        for violation in run.violations:
            if violation.anomaly in run.requirement.required:
                continue  # planted
            history = _history(report.differences, run, violation.anomaly)
            key = (
                history.group
                if history
                else FindingGroup(violation.anomaly, fault_text(faults_of(run)), client(run))
            )
            members.setdefault(key, []).append((place, run, violation.count))
            if history:
                histories[key] = history
    found = [_group(report, key, placed, histories.get(key)) for key, placed in members.items()]
    return sorted(found, key=lambda each: (each.state != GroupState.NEW, -len(each.runs), each.group.anomaly))


def client(run: RunReport) -> str:
    return text(run.settings, "client", "unknown")


def _group(
    report: Report, key: FindingGroup, placed: Iterable[Placed], history: GroupHistory | None
) -> GroupOfFindings:
    runs = tuple(sorted(placed, key=lambda each: -each[2]))
    names = list(dict.fromkeys(run.scenario for _, run, _ in runs))
    night = report.night
    replayed = [night.replayed[name] for name in names if name in night.replayed] if night else []
    minimised = [night.minimised[name] for name in names if name in night.minimised] if night else []
    return GroupOfFindings(
        key,
        runs,
        history.tonight if history else _rate(report.runs, key, len({run.path for _, run, _ in runs})),
        history,
        Rate(sum(r.found for r in replayed), sum(r.runs for r in replayed)) if replayed else None,
        min(minimised, key=lambda each: (not each.shows, each.faults or 0)) if minimised else None,
    )


def _rate(runs: Iterable[RunReport], key: FindingGroup, found: int) -> Rate:
    like = [
        run
        for run in runs
        if (fault_text(faults_of(run)), client(run)) == (key.fault, key.client)
        and run.verdict != INCONCLUSIVE
        and not run.error
        and not run.control
    ]
    return Rate(found, max(found, len(like)))


def _history(differences: Differences | None, run: RunReport, anomaly: str) -> GroupHistory | None:
    """Return the group of a store that names this run and anomaly."""
    if differences is None:
        return None
    name = f"{run.path.parent.name}/{run.path.name}"
    return next(
        (each for each in differences.groups if each.group.anomaly == anomaly and name in each.run_dirs), None
    )
