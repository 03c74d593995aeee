"""The result of sealing besides the tables: names, numbers, sessions, observers, and the questions not asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.reconcile.seal.readings import NotAsked

Span = list[int]  # topic, partition, first offset, 1 + highest offset; a list, because JSON has no tuples
FENCED = "fenced"  # a step that no worker records: sealing adds it
Event = dict[str, Any]


@dataclass
class Observed:
    """An observer: what it reads, and the offsets between which it has read."""

    reader: int  # its number in the tables
    name: str
    isolation: str
    records: int = 0
    spans: list[Span] = field(default_factory=list)
    behind: str | None = None  # what it had not read when it had to stop; None: it did not report

    def add(self, rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
        """Count the next rows that the observer got, and return them."""
        self.records += len(rows)
        known = {(topic, partition): (first, reach) for topic, partition, first, reach in self.spans}
        for topic, partition in {*zip(rows["topic"].tolist(), rows["partition"].tolist(), strict=True)}:
            mine = rows["offset"][(rows["topic"] == topic) & (rows["partition"] == partition)]
            first, reach = int(mine.min()), int(mine.max()) + 1
            before = known.get((topic, partition), (first, reach))
            known[topic, partition] = min(first, before[0]), max(reach, before[1])
        self.spans = [[*place, *span] for place, span in sorted(known.items())]
        return rows


def isolation_of(event: Event) -> str:
    """Return the isolation in an `observer` event; raise KeyError or ValueError if it has none."""
    isolation = str(event["isolation"])
    if isolation not in ("read_committed", "read_uncommitted"):
        raise ValueError(f"isolation: {isolation!r}")
    return isolation


def behind_of(event: Event) -> str:
    """Return what the observer of a `reached` event had not read; empty: it had read everything."""
    detail = str(event.get("detail", ""))
    return "" if event.get("complete") is True else detail or "it does not say what"


@dataclass(frozen=True)
class SealedSession:
    """A producer session; the sessions of one producer are ordered by incarnation."""

    session: int
    producer: str
    incarnation: int
    attempted: int


@dataclass
class Sealed:
    """The result of sealing besides the tables. `torn`: normal ends of killed workers; `gaps` cast doubt on the run."""

    run: int  # the run's number in all tables
    run_id: str
    scenario: str
    zero_ns: int
    group_isolation: str  # of the readers of the group
    topic_unchanged: bool  # the topic's number of partitions stayed the same
    topic_names: list[str] = field(default_factory=lambda: ["topic-0"])  # by their numbers
    transform: dict[str, Any] | None = None  # of a pipeline: harness.ledger.transform.Transform as data
    reader_names: list[str] = field(default_factory=list)  # by their numbers in the tables
    torn: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    not_asked: list[NotAsked] = field(default_factory=list)  # of which partition, what, and why (E11)
    rows: Counter[str] = field(default_factory=Counter)  # of each table
    in_log: int = 0  # records in the log that is owed
    in_log_uncommitted: int = 0
    readers: int = 0  # of the group
    observers: list[Observed] = field(default_factory=list)  # readers that are not members of the group
    rebalances: int = 0
    commits: int = 0
    # How they ended, as their producers recorded it.
    transactions: Counter[str] = field(default_factory=Counter)
    in_flight: int | None = None  # of every session; None: at least one left it to the client
    sessions: list[SealedSession] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)  # of kinds that are rare in any run

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "sessions": [asdict(one) for one in self.sessions],
            "observers": [asdict(one) for one in self.observers],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Sealed:
        sessions = [SealedSession(**one) for one in stored["sessions"]]
        observers = [Observed(**one) for one in stored.get("observers", ())]
        _ = stored["not_asked"]  # without it the tables are of an older version, which asked everything
        counters = {name: Counter(stored[name]) for name in ("rows", "transactions")}
        return cls(**{**stored, **counters, "sessions": sessions, "observers": observers})
