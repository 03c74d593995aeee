"""Literal run folders for tests: a history written down by hand becomes real journals and a manifest.

`finish` writes it with the writers of harness.ledger.journal, on its own clock. The ledger is whole: every writer closes its
journals, except workers that a `worker` event calls killed or failed, and the writers in `unclosed`.
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

from harness.ledger import journal as ledger_journal
from harness.ledger import reading
from harness.ledger.literal_history import START_NS, LiteralHistory, Record
from harness.ledger.manifest import ISOLATIONS
from harness.ledger.message import ABORT_INTENDED, EFFECT
from harness.ledger.rows import DELIVERY
from harness.ledger.rows import EFFECT as EFFECT_ROW
from harness.ledger.rundir import RunDir, write_json
from harness.ledger.transform import INPUT


@dataclass
class LiteralRun(LiteralHistory):
    """A history, and the run folder that it becomes."""

    _rows: dict[str, dict[str, int]] = field(default_factory=dict)  # writer -> its journals and their rows

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
        rows = np.zeros(len(records), dtype=DELIVERY)
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
        rows = np.zeros(len(made), dtype=EFFECT_ROW)
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
    return {**fields, "files": reading.file_sizes(run.ledger, str(fields["writes_as"]))}


def killed_now(run: RunDir) -> None:
    """Record the sizes of killed workers' files again: as if each had been killed only now."""
    path = run.ledger / f"{ledger_journal.HARNESS}.events"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line.get("files"):
            line["files"] = reading.file_sizes(run.ledger, line["writes_as"])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
