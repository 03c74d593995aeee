"""The differences between a session of runs and the sessions before it: findings, rates and times. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from harness.trends.changes import Change, changes_of
from harness.trends.groups import FindingGroup, GroupHistory, GroupState, histories
from harness.trends.row import Row
from harness.trends.sessions import SessionPoint, sides_of

__all__ = [
    "DAYS",
    "Change",
    "Differences",
    "FindingGroup",
    "GroupHistory",
    "GroupState",
    "SessionPoint",
    "differences"
]  # fmt: skip
DAYS = 14.0


@dataclass(frozen=True)
class Differences:
    """A session compared with its baseline."""

    session: str
    kind: str
    date: str
    runs: int
    baseline_sessions: tuple[str, ...]  # oldest first
    groups: tuple[GroupHistory, ...]  # new ones first, then known, gone, not asked
    changes: tuple[Change, ...]
    unchanged: int  # comparisons without a change beyond noise
    other_machines: int  # runs before whose times are not compared, because no run now was on their machine
    series: tuple[SessionPoint, ...]  # baseline and session, oldest first

    def in_state(self, state: GroupState) -> tuple[GroupHistory, ...]:
        return tuple(each for each in self.groups if each.state is state)

    def as_data(self) -> dict[str, Any]:
        """Return the differences as JSON values."""
        groups = [
            {
                **asdict(each.group),
                "state": each.state.value,
                "tonight": each.tonight.as_data(),
                "before": each.before.as_data(),
                "first_seen": each.first_seen,
                "run_dirs": list(each.run_dirs),
            }
            for each in self.groups
        ]
        return {
            "session": self.session,
            "kind": self.kind,
            "date": self.date,
            "runs": self.runs,
            "baseline_sessions": list(self.baseline_sessions),
            "groups": groups,
            "changes": [asdict(each) for each in self.changes],
            "unchanged": self.unchanged,
            "other_machines": self.other_machines,
            "series": [asdict(each) for each in self.series],
        }


def differences(
    rows: Iterable[Row], session: str | None = None, against: str | None = None, days: float = DAYS
) -> Differences:
    """Compare a session with the sessions of its kind in the days before it.

    `session`: an id or a date; by default the newest night, or else the newest session.
    `against`: the id or date of other sessions, or a version of Kafka or of the client. Then the runs of the session that do
    not have this version are compared with those of the session and of the days before it that do.
    Raises a UsageError if there is nothing of that name.
    """
    sides = sides_of(rows, session, against, days)
    groups = histories(sides.tonight, sides.before)
    machines = {row.machine for row in sides.tonight}
    timed = [row for row in sides.before if row.machine in machines]
    changes, unchanged = changes_of(groups, sides.tonight, timed)
    return Differences(
        session=sides.session.id,
        kind=sides.session.kind,
        date=sides.session.date,
        runs=len(sides.tonight),
        baseline_sessions=sides.baseline,
        groups=groups,
        changes=changes,
        unchanged=unchanged,
        other_machines=len(sides.before) - len(timed),
        series=sides.series,
    )
