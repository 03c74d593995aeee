"""Literal run folders for tests: a history written down by hand becomes real journals and a manifest.

A run is built as a model first: sessions send, records are appended to the log, readers are given them. Left
alone it is a consistent run: everything acked is in the log and delivered once. A test plants an anomaly by
changing the lists `log`, `committed` and `deliveries`, or an outcome, before `finish` writes everything with
the writers of harness.ledger.journal, on its own clock. The ledger is whole: every writer closes its journals, except workers
that a `worker` event calls killed or failed, and the writers in `unclosed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from harness.contracts import Mode, Outcome, Verdict
from harness.ledger import journal as ledger_journal
from harness.ledger.manifest import ISOLATIONS
from harness.ledger.message import ABORT_INTENDED, EFFECT
from harness.ledger.rundir import RunDir, write_json
from harness.ledger.transform import DEAD_LETTERS, INPUT, OUTPUT, Transform

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
class LiteralRun:
    """A run that is built by hand (see the module). Each step advances the clock by a millisecond."""

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
    _rows: dict[str, dict[str, int]] = field(default_factory=dict)  # writer -> its journals and their rows

    def tick(self, seconds: float = 0.001) -> int:
        self.clock += int(seconds * SECOND)
        return self.clock

    def event(self, kind: str, writer: str = ledger_journal.HARNESS, **fields: Any) -> None:
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

    # --- writing ---

    def finish(self) -> RunDir:
        """Write the run folder."""
        run = RunDir.create(self.root, self.name)
        committed = self._committed() if self.committed is None else self.committed
        readable = [
            r
            for r in (committed if self.isolation == "read_committed" else self.log)
            if r.topic == INPUT or self.transform is None
        ]
        given = self.deliveries if self.deliveries is not None else [("consumer-1.0", r) for r in readable]
        readers = dict.fromkeys(["consumer-1.0", *(reader for reader, _ in given)])
        assigned = {writer for _, writer, kind, _ in self._events if kind == "assignment"}
        for reader in readers:
            if reader not in assigned:
                self.assign(reader, *range(self.partitions))
        given = [(reader, r if r.t else replace(r, t=self.tick())) for reader, r in given]
        if self.commits:
            self._commit_all(given)
        for reader in self.observed:
            if (behind := self.behind.get(reader, "")) is not None:
                self.event("reached", reader, complete=not behind, detail=behind)
        self._record_end()
        for number, writer in self._sessions.items():
            self._write_attempts(run, number, writer)
        for reader in readers:
            self._write_records(run.ledger / f"{reader}.deliveries", [r for to, r in given if to == reader])
        for reader, seen in self.observed.items():
            self._write_records(run.ledger / f"{reader}.deliveries", seen)
        for isolation, whole in (("read_uncommitted", self.log), ("read_committed", committed)):
            if not self.final_reading:
                break
            rows = [r for r in whole if self._was_read(isolation, r)]
            self._write_records(run.ledger / f"final-reader.{isolation}.log", rows)
            if self.transform is not None:
                self._write_effects(run.ledger / f"final-reader.{isolation}.effects", rows)
        self._write_events(run)
        write_json(run.manifest, self._manifest(run))
        return run

    def _committed(self) -> list[Record]:
        return [r for r in self.log if r.txn == 0 or self._fates.get((r.session, r.txn)) == "committed"]

    def _commit_all(self, given: Iterable[tuple[str, Record]]) -> None:
        passed: dict[str, dict[int, int]] = {}
        for reader, r in given:
            mine = passed.setdefault(reader, {})
            mine[r.partition] = max(mine.get(r.partition, 0), r.offset + 1)
        for reader, offsets in passed.items():
            self.commit(reader, offsets)

    def _was_read(self, isolation: str, record: Record) -> bool:
        reached = self.stopped_at.get((isolation, record.topic << 32 | record.partition))
        return reached is None or record.offset < reached

    def _record_end(self) -> None:
        """Record the events of the drain and of the final reading."""
        counts = [self.partitions, *([1, 1] if self.transform is not None else [])]
        for r in self.log:
            counts += [0] * (r.topic + 1 - len(counts))
            counts[r.topic] = max(counts[r.topic], r.partition + 1)
        places = [topic << 32 | p for topic, count in enumerate(counts) for p in range(count)]
        at = {place: self.bounds.get(place, self._all_of(place)) for place in places}
        ends = {p: self.drained_to.get(p, at[p][1]) for p in range(counts[INPUT])}
        detail = "" if self.drained else "partition 0 at 3 of 9"
        self.event(
            "drain", complete=self.drained, detail=detail, topic=INPUT, ends=ends if self.drained else {}
        )
        if not self.final_reading:
            return
        self.event("reading_begins", "final-reader", partitions=counts)
        for place in places:
            self._record_bounds("before", place, at[place])
        for isolation in ISOLATIONS:
            for place in places:
                self._record_reading(isolation, place, self.bounds_after.get(place, at[place]))
        for isolation, complete in self.reads.items():
            stopped = any(name == isolation for name, _ in (*self.stopped_at, *self.unfinished))
            self.event(
                "read", "final-reader", isolation=isolation, complete=complete and not stopped, detail=""
            )

    def _all_of(self, place: int) -> tuple[int, int, int]:
        end = max((r.offset + 1 for r in self.log if r.topic << 32 | r.partition == place), default=0)
        return 0, end, end

    def _record_bounds(self, when: str, place: int, bounds: tuple[int, int, int]) -> None:
        fields = dict(zip(("start", "end", "stable"), bounds, strict=True))
        self.event(
            "bounds", "final-reader", when=when, topic=place >> 32, partition=place & 0xFFFF_FFFF, **fields
        )

    def _record_reading(self, isolation: str, place: int, after: tuple[int, int, int]) -> None:
        until = after[1 if isolation == "read_uncommitted" else 2]
        reached = self.stopped_at.get((isolation, place), until)
        if (isolation, place) in self.unfinished:
            return
        self._record_bounds("after", place, after)
        self.event(
            "reading", "final-reader", isolation=isolation, topic=place >> 32, partition=place & 0xFFFF_FFFF,
            reached=reached, until=until,
        )  # fmt: skip

    def _write_events(self, run: RunDir) -> None:
        """Write all events; those of the harness last, because they have the sizes of the files of killed workers."""
        writers = sorted(
            {writer for _, writer, _, _ in self._events}, key=lambda writer: writer == ledger_journal.HARNESS
        )
        for writer in writers:
            log = ledger_journal.EventLog(run.ledger / f"{writer}.events", writer)
            for t, _, kind, fields in sorted((e for e in self._events if e[1] == writer), key=lambda e: e[0]):
                with patch.object(ledger_journal, "now_ns", lambda t=t: t):
                    log.write(kind, **_with_sizes(run, kind, fields))
            if not self._left_open(writer):
                with patch.object(ledger_journal, "now_ns", self.tick):
                    log.write("closed", rows=self._rows.get(writer, {}), lines=log.lines + 1)
            log.close()

    def _left_open(self, writer: str) -> bool:
        """Return True for writers without a closing event: killed workers, and a harness that was stopped."""
        ends = [fields for _, _, kind, fields in self._events if kind == "worker"]
        dead = {str(fields["name"]) for fields in ends if fields["state"] in ("killed", "failed")}
        stopped = writer == ledger_journal.HARNESS and not self.manifest.get("complete", True)
        return stopped or writer in self.unclosed or writer in dead or writer.rpartition(".")[0] in dead

    def _count(self, writer: str, path: Path, rows: int) -> None:
        self._rows.setdefault(writer, {})[path.name] = rows

    def _write_attempts(self, run: RunDir, number: int, writer: str) -> None:
        path = run.ledger / f"{writer}.{number}.attempts"
        journal = ledger_journal.AttemptJournal(path)
        now = 0
        with patch.object(ledger_journal, "now_ns", lambda: now):
            for one in (s for s in self.sent if s.session == number):
                now = one.t
                journal.attempt(one.seq, one.key, one.partition, one.txn, 0, one.topic)
                if one.outcome is not None:
                    now = one.t_outcome or one.t + 1
                    journal.outcome(one.seq, one.outcome, one.told_partition, one.offset, 0)
        self._count(writer, path, journal.attempted)
        journal.close()

    def _write_records(self, path: Path, records: list[Record]) -> None:
        rows = np.zeros(len(records), dtype=ledger_journal.DELIVERY)
        for i, r in enumerate(records):
            for name, value in vars(r).items():
                rows[name][i] = value & (ABORT_INTENDED | EFFECT) if name == "intent" else value
            rows["intended_topic"][i] = r.topic
        rows["t"] = [r.t or self.tick() for r in records]
        rows["leader_epoch"] = -1
        self._write_rows(path, rows)

    def _write_effects(self, path: Path, records: list[Record]) -> None:
        made = [
            (r, *self.origins[at])
            for r in records
            if (at := (r.topic, r.partition, r.offset)) in self.origins
        ]
        rows = np.zeros(len(made), dtype=ledger_journal.EFFECT)
        for i, (effect, origin, number) in enumerate(made):
            rows["number"][i] = number
            for name in ("offset", "seq", "session", "partition", "topic"):
                rows[name][i], rows[f"origin_{name}"][i] = getattr(effect, name), getattr(origin, name)
        self._write_rows(path, rows)

    def _write_rows(self, path: Path, rows: npt.NDArray[np.void]) -> None:
        journal = ledger_journal.RowJournal(path)
        journal.append(rows)
        writer = path.stem if path.suffix == ".deliveries" else path.stem.rpartition(".")[0]
        self._count(writer, path, journal.rows)
        journal.close()

    def _manifest(self, run: RunDir) -> Mapping[str, Any]:
        scenario = {
            "name": self.name, "mode": self.mode, "guarantee": self.judged_as or self.mode, "judged_as": self.judged_as,
            "expected": self.expected, "control": False, "schedule": [{"fault": {"name": "kill"}}] * self.scheduled,
            "consumers": {"isolation": self.isolation}, "topic": {"partitions": self.partitions},
        }  # fmt: skip
        clock = {"monotonic_ns": START_NS, "wall": "2026-01-01T00:00:00+0000"}
        return {
            "version": ledger_journal.VERSION, "run_id": run.run_id, "scenario": scenario, "expected": self.expected,
            "topic": "orders", "topics": ["orders", "orders-output", "orders-dead-letters"], "group": "orders-group",
            "transform": asdict(self.transform) if self.transform is not None else None, "clock": clock, "complete": True, **self.manifest,
        }  # fmt: skip


def _with_sizes(run: RunDir, kind: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the sizes of its files to the event of a killed or failed worker, unless it has them already."""
    if (
        kind != "worker"
        or fields["state"] not in ("killed", "failed")
        or "files" in fields
        or "writes_as" not in fields
    ):
        return fields
    return {**fields, "files": ledger_journal.file_sizes(run.ledger, str(fields["writes_as"]))}


def killed_now(run: RunDir) -> None:
    """Record the sizes of killed workers' files again: as if each had been killed only now."""
    path = run.ledger / f"{ledger_journal.HARNESS}.events"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line.get("files"):
            line["files"] = ledger_journal.file_sizes(run.ledger, line["writes_as"])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
