"""What sealing reports of a run besides its tables: names, numbers, sessions, observers and what cannot be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.reconcile.seal.readings import NotAsked

Span = list[int]  # topic, partition, first offset, 1 + highest offset; a list, as JSON gives it back
FENCED = "fenced"  # a step that no worker tells of: sealing adds it
Event = dict[str, Any]


@dataclass
class Observed:
    """What sealing tells of one observer."""

    reader: int  # its number in the tables
    name: str
    isolation: str
    records: int = 0
    spans: list[Span] = field(default_factory=list)
    behind: str | None = None  # what it had not read when it was asked to stop; None: it never said

    def add(self, rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
        """The same rows, which it was given next."""
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
    """What an `observer` event says; KeyError or ValueError where it does not."""
    isolation = str(event["isolation"])
    if isolation not in ("read_committed", "read_uncommitted"):
        raise ValueError(f"isolation: {isolation!r}")
    return isolation


def behind_of(event: Event) -> str:
    """What a `reached` event says that its observer had not read; empty: it had read everything."""
    detail = str(event.get("detail", ""))
    return "" if event.get("complete") is True else detail or "it does not say what"


@dataclass(frozen=True)
class SealedSession:
    """A producer session; those of one producer follow each other by incarnation."""

    session: int
    producer: str
    incarnation: int
    attempted: int


@dataclass
class Sealed:
    """What sealing saw besides the tables. `torn` is the normal end of a killed worker; `gaps` cast doubt on the run."""

    run: int  # the run's number in all tables
    run_id: str
    scenario: str
    zero_ns: int
    group_isolation: str  # what the group's readers were promised to read
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
    observers: list[Observed] = field(default_factory=list)  # readers that are none of the group
    rebalances: int = 0
    commits: int = 0
    transactions: Counter[str] = field(
        default_factory=Counter
    )  # how they came to their ends, as their producers tell
    in_flight: int | None = None  # of every session; None: left to the client by at least one
    sessions: list[SealedSession] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)  # those that are rare in any run

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "sessions": [asdict(one) for one in self.sessions],
            "observers": [asdict(one) for one in self.observers],
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Sealed:
        sessions = [SealedSession(**one) for one in told["sessions"]]
        observers = [Observed(**one) for one in told.get("observers", ())]
        _ = told["not_asked"]  # without it the tables are of an older version, which asked everything
        counters = {name: Counter(told[name]) for name in ("rows", "transactions")}
        return cls(**{**told, **counters, "sessions": sessions, "observers": observers})
