"""Findings of one anomaly, fault and client: which are new tonight, known or gone. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.statistics.rates import Rate
from harness.trends.row import Row, faults_in


class GroupState(StrEnum):
    """A group of findings tonight, compared with the sessions before."""

    NEW = "new"  # in none of them
    KNOWN = "known"
    GONE = "gone"  # only before, although tonight ran its faults in its mode
    NOT_ASKED = "not_asked"  # only before, and tonight ran nothing that could show it


@dataclass(frozen=True)
class FindingGroup:
    """Findings with one cause, as far as names tell."""

    anomaly: str
    fault: str  # names without targets: "kill", "kill + pause", "none"
    client: str  # without its version

    def __str__(self) -> str:
        return f"{self.anomaly}, fault {self.fault}, client {self.client}"


@dataclass(frozen=True)
class GroupHistory:
    """A group tonight and before. A rate counts the conclusive runs that could have shown the group."""

    group: FindingGroup
    tonight: Rate
    before: Rate
    state: GroupState
    first_seen: str  # date of the first run with the group, as ISO text
    run_dirs: tuple[str, ...]  # runs that show it, relative to the folder of the runs, the newest first


def histories(tonight: Sequence[Row], before: Sequence[Row]) -> tuple[GroupHistory, ...]:
    """Return every group of both sides: the new ones first, then known, gone and not asked."""
    modes: dict[FindingGroup, set[str]] = defaultdict(set)
    for row in (*before, *tonight):
        for anomaly, fault in row.findings.items():
            modes[FindingGroup(anomaly, fault, row.client)].add(row.judged_as)
    found = [_history(group, modes[group], tonight, before) for group in modes]
    order = list(GroupState)
    return tuple(
        sorted(found, key=lambda each: (order.index(each.state), -each.tonight.found, str(each.group)))
    )


def _history(
    group: FindingGroup, modes: set[str], tonight: Sequence[Row], before: Sequence[Row]
) -> GroupHistory:
    now, then = _rate(group, modes, tonight), _rate(group, modes, before)
    if now.found:
        state = GroupState.KNOWN if then.found else GroupState.NEW
    else:
        state = GroupState.GONE if now.runs else GroupState.NOT_ASKED
    shown = sorted(_shown(group, (*before, *tonight)), key=lambda row: row.started_s)
    runs = tuple(dict.fromkeys(row.run for row in reversed(shown)))
    return GroupHistory(group, now, then, state, shown[0].date, runs)


def _rate(group: FindingGroup, modes: set[str], rows: Iterable[Row]) -> Rate:
    """Return how many of the runs show the group that could: with its faults and its client, in a mode that once did."""
    faults = faults_in(group.fault)
    asked = [
        row
        for row in rows
        if row.conclusive
        and not row.canary
        and row.client == group.client
        and row.judged_as in modes
        and group.anomaly not in row.planted
        and (faults.issubset(row.faults) if faults else not row.faults)
    ]
    return Rate(sum(1 for _ in _shown(group, asked)), len(asked))


def _shown(group: FindingGroup, rows: Iterable[Row]) -> Iterable[Row]:
    """Yield the rows with the group; one with more faults at once shows it too, as any of them may be the cause."""
    faults = faults_in(group.fault)
    for row in rows:
        found = row.findings.get(group.anomaly)
        if found is not None and row.client == group.client:
            its = faults_in(found)
            if faults <= its if faults else not its:
                yield row
