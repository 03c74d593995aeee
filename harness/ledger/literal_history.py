"""Literal histories for tests: what the clients of a run attempted and saw, written down by hand.

Sessions send, records are appended to the log, readers are given them. Left alone it is a consistent run: everything acked is in
the log and delivered once. A test plants an anomaly by changing the lists `log`, `committed` and `deliveries`, or an outcome.
harness.ledger.literal_run makes journals of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.contracts import Mode, Outcome, Verdict
from harness.ledger.journal import HARNESS
from harness.ledger.transform import DEAD_LETTERS, OUTPUT, Transform

SECOND = 1_000_000_000
START_NS = 1000 * SECOND


@dataclass(frozen=True)
class Record:
    """One record at a position, as a reader gets it."""

    session: int
    seq: int
    partition: int
    offset: int
    txn: int = 0
    key: int = -1
    intended_partition: int = -1
    flags: int = 0
    topic: int = 0
    intent: int = 0
    t: int = 0  # when a reader got it; 0: `finish` chooses the next time


@dataclass
class Sent:
    """One attempt and its outcome."""

    session: int
    seq: int
    partition: int
    key: int
    txn: int
    t: int
    topic: int = 0
    outcome: Outcome | None = None  # None: none was recorded, as with a killed producer
    told_partition: int = -1
    offset: int = -1
    t_outcome: int = 0

    def at(self, partition: int, offset: int, **changes: Any) -> Record:
        record = Record(
            self.session, self.seq, partition, offset, self.txn, self.key, self.partition, topic=self.topic
        )
        return replace(record, **changes)


@dataclass
class LiteralHistory:
    """The history of a run, built by hand (see the module). Each step advances the clock by a millisecond."""

    root: Path
    mode: Mode = Mode.AT_LEAST_ONCE
    name: str = "literal"
    isolation: str = "read_committed"
    judged_as: Mode | None = None
    expected: Verdict = Verdict.HELD
    scheduled: int = 0
    partitions: int = 3
    clock: int = START_NS
    sent: list[Sent] = field(default_factory=list)
    log: list[Record] = field(default_factory=list)
    committed: list[Record] | None = None  # None: the log without aborted and unfinished transactions
    deliveries: list[tuple[str, Record]] | None = None  # None: all that the group can read, once
    bounds: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # by place, as _next
    # Bounds after the final reading, for places where they changed.
    bounds_after: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    # By isolation and place, how far the final reading came: later records are not written.
    stopped_at: dict[tuple[str, int], int] = field(default_factory=dict)
    unfinished: set[tuple[str, int]] = field(default_factory=set)  # readings that left no event of their end
    final_reading: bool = True  # False: the run was stopped before it began
    # By partition; without an entry the end of the log.
    drained_to: dict[int, int] = field(default_factory=dict)
    commits: bool = True  # each reader commits what it was given, after all of it
    drained: bool = True
    reads: dict[str, bool] = field(default_factory=lambda: {"read_uncommitted": True, "read_committed": True})
    manifest: dict[str, Any] = field(default_factory=dict)
    transform: Transform | None = None  # of a pipeline, whose input is topic 0
    # Topic, partition, offset of an effect -> the input it was made of, and its number
    origins: dict[tuple[int, int, int], tuple[Record, int]] = field(default_factory=dict)
    observed: dict[str, list[Record]] = field(default_factory=dict)  # by the observer's name
    # By the observer's name, what it had not read in the end; None: it does not say. Without an entry: it had read all.
    behind: dict[str, str | None] = field(default_factory=dict)
    unclosed: set[str] = field(default_factory=set)  # writers without a closing event
    _events: list[tuple[int, str, str, dict[str, Any]]] = field(default_factory=list)
    _sessions: dict[int, str] = field(default_factory=dict)
    _fates: dict[tuple[int, int], str] = field(default_factory=dict)
    _next: dict[int, int] = field(default_factory=dict)  # by place: topic << 32 | partition

    def tick(self, seconds: float = 0.001) -> int:
        self.clock += int(seconds * SECOND)
        return self.clock

    def event(self, kind: str, writer: str = HARNESS, **fields: Any) -> None:
        self._events.append((self.tick(), writer, kind, fields))

    def session(self, number: int, producer: str = "", incarnation: int = 0, **settings: Any) -> int:
        """Begin a producer session."""
        producer = producer or f"producer-{number}"
        self._sessions[number] = f"{producer}.{incarnation}"
        facts = {
            "acks": "all",
            "in_flight": None,
            "idempotent": False,
            "retries": True,
            "transactional_id": "",
        }
        self.event("session", self._sessions[number], session=number, producer=producer, incarnation=incarnation,
                   mode=self.mode, **(facts | settings))  # fmt: skip
        return number

    def send(
        self,
        session: int,
        partition: int = 0,
        *,
        key: int = -1,
        txn: int = 0,
        chosen: bool = False,
        topic: int = 0,
    ) -> Sent:
        """Attempt the session's next message; `chosen`: the client picked the partition."""
        seq = sum(1 for s in self.sent if s.session == session)
        one = Sent(session, seq, -1 if chosen else partition, key, txn, self.tick(), topic)
        self.sent.append(one)
        return one

    def append(self, one: Sent, partition: int | None = None, *, ack: bool = True, gap: int = 0) -> Record:
        """Append the message to the log at the next offset (after `gap` markers) and ack it."""
        place = one.partition if partition is None else partition
        offset = self._next.get(one.topic << 32 | place, 0) + gap
        self._next[one.topic << 32 | place] = offset + 1
        self.log.append(one.at(place, offset))
        if ack:
            self.ack(one, place, offset)
        return self.log[-1]

    def ack(self, one: Sent, partition: int, offset: int) -> None:
        one.outcome, one.told_partition, one.offset, one.t_outcome = (
            Outcome.ACKED,
            partition,
            offset,
            self.tick(),
        )

    def write(self, session: int, count: int, partition: int = 0, *, key: int = -1, txn: int = 0,
              chosen: bool = False) -> list[Record]:  # fmt: skip
        """Send, append and ack `count` messages."""
        made = (self.send(session, partition, key=key, txn=txn, chosen=chosen) for _ in range(count))
        return [self.append(one, partition) for one in made]

    def copy(self, session: int, record: Record, partition: int = 0, *, txn: int = 0) -> list[Record]:
        """Write and ack every effect that the pipeline has to make of this record."""
        assert self.transform is not None
        message = np.array([record.session]), np.array([record.seq])
        topic = DEAD_LETTERS if self.transform.poison(*message)[0] else OUTPUT
        made = [
            self.append(self.send(session, partition, txn=txn, topic=topic))
            for _ in range(int(self.transform.effects(*message)[0]))
        ]
        for number, one in enumerate(made):
            self.origins[one.topic, one.partition, one.offset] = record, number
        return made

    def end(
        self, session: int, txn: int, did: str | None = "commit", outcome: Outcome | None = Outcome.ACKED
    ) -> None:
        """Record the events of a transaction: `did` None was never ended, `outcome` None is not known to its writer."""
        writer = self._sessions[session]
        facts = {"session": session, "txn": txn, "intent": did or "commit"}
        self.event("txn", writer, step="begin", **facts)
        if did is not None:
            self.event("txn", writer, step="end", did=did, **facts)
        if did is not None and outcome is not None:
            self.event("txn", writer, step="ended", did=did, outcome=int(outcome), **facts)
        committed = did == "commit" and outcome is Outcome.ACKED
        self._fates[session, txn] = "committed" if committed else "not"

    # --- the group, step by step (without these: one reader, given everything once) ---

    def give(self, reader: str, *records: Record, apart: bool = True) -> None:
        """Deliver these to the reader now; not `apart`: in one poll, so that they have one time."""
        if self.deliveries is None:
            self.deliveries = []
        self.tick()
        self.deliveries += [(reader, replace(r, t=self.tick() if apart else self.clock)) for r in records]

    def observe(self, reader: str, isolation: str, *records: Record) -> None:
        """Deliver these to an observer, which is not a member of the group."""
        if reader not in self.observed:
            self.observed[reader] = []
            self.event("observer", reader, isolation=isolation, topics=["orders"])
        self.observed[reader] += [replace(r, t=self.tick()) for r in records]

    def assign(self, reader: str, *partitions: int, how: str = "assigned", late: bool = False) -> None:
        self.event("assignment", reader, reader=reader, how=how, partitions=list(partitions), late=late)

    def commit(self, reader: str, offsets: Mapping[int, int], outcome: Outcome = Outcome.ACKED) -> None:
        self.event("commit", reader, reader=reader, offsets=offsets, outcome=int(outcome), error="")

    def killed(self, writer: str) -> None:
        """Record that the harness killed this worker: it closes nothing, and the event has the sizes of its files."""
        self.event(
            "worker", name=writer.rpartition(".")[0] or writer, state="killed", exit=-9, writes_as=writer
        )

    def window(self, number: int = 0, *, bit: bool = True, healed: bool = True, seconds: float = 2.0) -> None:
        """Record a fault window, from now on for `seconds`."""
        life: dict[str, Any] = {"window": number, "fault": "kill", "target": "leader", "nodes": ["broker-1"]}
        self.event("window", step="open", **life)
        self.event("window", step="bite", bit=bit, proof="leader changed" if bit else "nothing changed",
                   measured={"ms": 12.5}, **life)  # fmt: skip
        self.tick(seconds)
        self.event("window", step="heal", **life)
        self.event("window", step="healed", healed=healed, proof="all in sync" if healed else "", **life)
