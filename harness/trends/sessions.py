"""Which runs are compared: those of one session, and those of the sessions before it or of another version. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from harness.contracts import Verdict
from harness.errors import UsageError
from harness.trends.row import NIGHTLY, REPEATS, Row

_DAY_S = 86_400.0
_MOST_NAMED = 5


@dataclass(frozen=True)
class RunSession:
    """The runs of one call of a command, without those that only repeat what it found."""

    rows: tuple[Row, ...]  # in order of their start

    @property
    def id(self) -> str:
        return self.rows[0].session

    @property
    def kind(self) -> str:
        return self.rows[0].kind

    @property
    def started_s(self) -> float:
        return self.rows[0].started_s

    @property
    def date(self) -> str:
        return self.rows[0].date

    def is_named(self, name: str) -> bool:
        return name in (self.id, self.date)


@dataclass(frozen=True)
class SessionPoint:
    """One session in the line of a trend."""

    session: str
    date: str
    runs: int
    violated: int  # runs with a finding: planted anomalies do not count
    inconclusive: int
    recovery_s: float | None  # median
    throughput_per_s: float | None  # median
    run_dir: str  # the run to open: the first violated one, otherwise the first inconclusive one, otherwise the first


@dataclass(frozen=True)
class Sides:
    """The two sets of runs that are compared."""

    session: RunSession
    tonight: tuple[Row, ...]
    before: tuple[Row, ...]
    baseline: tuple[str, ...]  # sessions of `before`, oldest first

    @property
    def series(self) -> tuple[SessionPoint, ...]:
        """The sessions of both sides, oldest first."""
        return tuple(_point(each) for each in sessions_of((*self.before, *self.tonight)))


def sides_of(rows: Iterable[Row], session: str | None, against: str | None, days: float) -> Sides:
    """Return the two sides; raise a UsageError if one cannot be found. `differences` has the rules."""
    every = sessions_of(rows)
    chosen = _chosen(every, session)
    alike = [each for each in every if each.kind == chosen.kind and each.id != chosen.id]
    recent = [each for each in alike if 0 <= chosen.started_s - each.started_s <= days * _DAY_S]
    if against is None:
        return _sides(chosen, recent)
    if named := [each for each in every if each.is_named(against) and each.id != chosen.id]:
        return _sides(chosen, named)
    before = tuple(row for each in (*recent, chosen) for row in each.rows if _has_version(row, against))
    if not before:
        raise UsageError(f"--against {against}: {_known(alike, recent, chosen)}")
    tonight = tuple(row for row in chosen.rows if not _has_version(row, against))
    if not tonight:
        raise UsageError(
            f"--against {against}: all runs of {chosen.id} have this version; give a version to compare them with"
        )
    return Sides(chosen, tonight, before, tuple(each.id for each in sessions_of(before)))


def sessions_of(rows: Iterable[Row]) -> list[RunSession]:
    """Return the sessions, oldest first. Runs of another kind than the first one repeat a finding and are left out."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.started_s, row.run)):
        kept = found[row.session]
        if not kept or kept[0].kind == row.kind:
            kept.append(row)
    return sorted((RunSession(tuple(kept)) for kept in found.values()), key=lambda each: each.started_s)


def _chosen(every: Sequence[RunSession], name: str | None) -> RunSession:
    if not every:
        raise UsageError("no runs are in the store; run ./onceproof nightly or prove first")
    if name is None:
        return max(every, key=lambda each: (each.kind == NIGHTLY, each.kind not in REPEATS, each.started_s))
    if not (named := [each for each in every if each.is_named(name)]):
        raise UsageError(f"{name}: no such session; the newest are {_names(every)}")
    return named[-1]


def _sides(chosen: RunSession, before: Sequence[RunSession]) -> Sides:
    rows = tuple(row for each in before for row in each.rows)
    return Sides(chosen, chosen.rows, rows, tuple(each.id for each in before))


def _has_version(row: Row, version: str) -> bool:
    return bool(version) and version in (row.kafka_version, row.client_version)


def _known(alike: Sequence[RunSession], recent: Sequence[RunSession], chosen: RunSession) -> str:
    rows = [row for each in (*recent, chosen) for row in each.rows]
    versions = sorted(
        {version for row in rows for version in (row.kafka_version, row.client_version) if version}
    )
    return (
        f"neither a session nor a version; sessions: {_names(alike)}; versions: {', '.join(versions) or 'none'}"
    )  # fmt: skip


def _names(sessions: Sequence[RunSession]) -> str:
    return ", ".join(f"{each.id} ({each.date})" for each in reversed(sessions[-_MOST_NAMED:])) or "none"


def _point(session: RunSession) -> SessionPoint:
    rows = session.rows
    violated = [row for row in rows if row.findings]
    unproven = [row for row in rows if row.verdict == Verdict.INCONCLUSIVE]
    recovery = [value for row in rows for value in row.recovery_s]
    throughput = [row.throughput_per_s for row in rows if row.throughput_per_s is not None]
    return SessionPoint(
        session.id, session.date, len(rows), len(violated), len(unproven),
        median(recovery) if recovery else None, median(throughput) if throughput else None,
        (*violated, *unproven, *rows)[0].run,
    )  # fmt: skip
