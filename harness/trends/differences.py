"""What differs between a session of runs and the sessions before it: findings, rates and times. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from harness.statistics.rates import Rate
from harness.trends.row import Row


class State(StrEnum):
    """A group of findings tonight, compared with the sessions before."""

    NEW = "new"  # in none of them
    KNOWN = "known"
    GONE = "gone"  # only before, although tonight ran its faults in its mode
    NOT_ASKED = "not_asked"  # only before, and tonight ran nothing that could show it


@dataclass(frozen=True)
class FindingGroup:
    """Findings with one cause, as far as names tell: no other run of the same night is another finding."""

    anomaly: str
    fault: str  # names without targets: "kill", "kill + pause", "none"
    client: str


@dataclass(frozen=True)
class GroupHistory:
    """A group tonight and before. A rate counts the conclusive runs that could have shown the group."""

    group: FindingGroup
    tonight: Rate
    before: Rate
    state: State
    first_seen: str  # date of the first session with the group, as ISO text
    run_dirs: tuple[str, ...]  # runs that show it, relative to the folder of the runs, the newest first


@dataclass(frozen=True)
class Change:
    """A number that changed beyond noise."""

    what: str  # "rate", or the name of a column: "recovery_s", "throughput_per_s" …
    of: str  # the group, or the fault and the mode
    before: float  # a share from 0 to 1, or a median
    tonight: float
    text: str  # one line for people
    p: float  # corrected for the number of comparisons


@dataclass(frozen=True)
class SessionPoint:
    """One session in a line of a trend."""

    session: str
    date: str
    runs: int
    violated: int  # runs with a finding: planted anomalies do not count
    inconclusive: int
    recovery_s: float | None  # median
    throughput_per_s: float | None  # median
    run_dir: str  # the run to open: the first violated one, otherwise an inconclusive one, otherwise the first


@dataclass(frozen=True)
class Differences:
    """A session compared with its baseline."""

    session: str
    baseline_sessions: tuple[str, ...]  # oldest first
    groups: tuple[GroupHistory, ...]  # new ones first, then known, gone, not asked
    changes: tuple[Change, ...]
    unchanged: int  # comparisons without a change beyond noise
    series: tuple[SessionPoint, ...]  # baseline and session, oldest first


def differences(
    rows: Iterable[Row], session: str | None = None, against: str | None = None, days: float = 14.0
) -> Differences:
    """Compare a session, by default the newest night or else the newest session, with those of the days before it.

    `against`: the date or id of one session, or a version of Kafka or of the client; then rows are split by version.
    """
    raise NotImplementedError
