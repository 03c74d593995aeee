"""The journals, events and manifest of a generated history, as the workers of a real run leave them."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from benchmarks.generated.history import (
    CODE,
    COMMIT_NS,
    END_NS,
    ENDED_NS,
    FETCH_ROUNDS,
    MS,
    OWNED,
    PARTITIONS,
    READERS,
    REBALANCE_NS,
    ROUND_NS,
    SESSIONS,
    START,
    TRANSACTIONAL,
    Given,
    History,
    Ints,
    Rows,
)
from harness.contracts import Mode, Outcome, Verdict
from harness.ledger import journal
from harness.ledger.message import ABORT_INTENDED
from harness.ledger.rows import ATTEMPT, ATTEMPT_MARK, DELIVERY, OUTCOME_MARK
from harness.ledger.rundir import write_json


class Journals(History):
    """The files of a run folder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.files: dict[str, IO[bytes]] = {}
        self.lines: Counter[str] = Counter()  # events of each writer

    def _file(self, name: str) -> IO[bytes]:
        if name not in self.files:
            self.files[name] = (self.run.ledger / name).open("wb")
        return self.files[name]

    def _store_attempts(self, session: int, rows: Rows) -> None:
        name = f"producer-{session}.0.{session}.attempts"
        self._file(name).write(rows.tobytes())
        self.attempted[name] += len(rows)

    def _store_deliveries(self, reader: int, name: str, rows: Rows) -> None:
        self._file(f"{name}.deliveries").write(rows.tobytes())

    def _store_log(self, readings: dict[str, Rows]) -> None:
        for isolation, rows in readings.items():
            self._file(f"final-reader.{isolation}.log").write(rows.tobytes())

    def _event(self, t: int, writer: str, kind: str, **fields: Any) -> None:
        line = json.dumps({"t": int(t), "event": kind, "writer": writer, **fields}) + "\n"
        self._file(f"{writer}.events").write(line.encode())
        self.lines[writer] += 1

    def _write_attempts(self, rows: Rows) -> None:
        for session in SESSIONS:
            mine = rows[(rows["session"] == session) & rows["first"]]
            mine = mine[np.argsort(mine["seq"])]
            made = np.zeros(len(mine), dtype=ATTEMPT)
            made["t_attempt"], made["t_outcome"] = mine["t"], mine["t_acked"]
            for name in ("key", "txn"):
                made[name] = mine[name]
            made["partition"], made["told_partition"] = mine["intended"], mine["partition"]
            made["offset"], made["outcome"] = mine["acked_offset"], Outcome.ACKED
            made["flags"] = np.where(mine["owed"], 0, ABORT_INTENDED)
            made["attempt_mark"], made["outcome_mark"] = ATTEMPT_MARK, OUTCOME_MARK
            self._store_attempts(session, made)

    def _records(self, rows: Rows, t: Ints) -> npt.NDArray[np.void]:
        made = np.zeros(len(rows), dtype=DELIVERY)
        for name in ("offset", "seq", "session", "txn", "key", "partition", "flags"):
            made[name] = rows[name]
        made["t"], made["intended_partition"] = t, rows["intended"]
        made["intent"] = np.where(rows["owed"], 0, ABORT_INTENDED)
        return made

    def _write_deliveries(self, rows: Rows, given: Given) -> None:
        for reader, name in enumerate(READERS):
            mine = given.kept(given.reader == reader)
            mine = mine.kept(np.argsort(mine.t, kind="stable"))
            self._store_deliveries(reader, name, self._records(rows[mine.row], mine.t))

    def _write_log(self, rows: Rows) -> None:
        fetched = rows[np.argsort(rows["round"] // FETCH_ROUNDS, kind="stable")]
        readings = {}
        for isolation, found in (
            ("read_uncommitted", fetched[fetched["in_log"]]),
            ("read_committed", fetched[fetched["in_committed"]]),
        ):
            polls = (self.polled[isolation] + np.arange(len(found))) // 1000
            self.polled[isolation] += len(found)
            readings[isolation] = self._records(found, self.end_t + polls * MS)
        self._store_log(readings)

    def _write_transactions(self, first: int, stop: int) -> None:
        for session in TRANSACTIONAL:
            for number in range(first, stop):
                did = "abort" if self._aborted(session, number) else "commit"
                began, writer = START + number * ROUND_NS, f"producer-{session}.0"
                facts = {"session": session, "txn": number + 1, "intent": did}
                self._event(began, writer, "txn", step="begin", **facts)
                self._event(began + END_NS, writer, "txn", step="end", **facts)
                ended = {"step": "ended", "did": did, "outcome": int(Outcome.ACKED)}
                self._event(began + ENDED_NS, writer, "txn", **ended, **facts)

    def _write_commits(self, rows: Rows, given: Given, first: int, stop: int) -> None:
        """Write the commits of each reader after a round: up to what it was given, and the planted ones beyond."""
        reached = np.full((stop - first, PARTITIONS), -1, dtype=np.int64)
        at = rows["round"][given.row] - first, rows["partition"][given.row]
        np.maximum.at(reached, at, rows["offset"][given.row] + 1)
        marks = rows[rows["plant"] == CODE["overcommitted"]]
        too_early = set(zip(marks["round"].tolist(), marks["partition"].tolist(), strict=True))
        for number in range(first, stop):
            if number == self.middle:
                self._record_rebalance()
            polled = START + (number + 1) * ROUND_NS
            for reader, partitions in enumerate(OWNED[number >= self.middle]):
                offsets = {
                    p: int(reached[number - first, p]) for p in partitions if reached[number - first, p] >= 0
                }
                for partition in partitions:
                    if (number, partition) in too_early:
                        self._commit(polled + 5 * MS, reader, {partition: offsets[partition]})
                self._commit(polled + COMMIT_NS, reader, offsets)

    def _commit(self, t: int, reader: int, offsets: dict[int, int]) -> None:
        if offsets:
            acked = {"outcome": int(Outcome.ACKED), "error": ""}
            self._event(t, READERS[reader], "commit", reader=READERS[reader], offsets=offsets, **acked)

    def _assign(self, t: int, how: str, owned: tuple[tuple[int, ...], ...]) -> None:
        for name, partitions in zip(READERS, owned, strict=True):
            self._event(t, name, "assignment", reader=name, how=how, partitions=list(partitions))

    def _record_rebalance(self) -> None:
        t = START + self.middle * ROUND_NS + REBALANCE_NS
        self._assign(t, "revoked", OWNED[0])
        self._assign(t + 3 * MS, "assigned", OWNED[1])

    def _begin(self) -> None:
        self._event(START - 90 * MS, "harness", "step", step="workers")
        for session in SESSIONS:
            writer = f"producer-{session}"
            self._event(
                START - 80 * MS, f"{writer}.0", "session", session=session, producer=writer, incarnation=0,
                mode=Mode.EXACTLY_ONCE, idempotent=True, retries=True, in_flight=5, acks="all",
                transactional_id=writer if session in TRANSACTIONAL else "",
            )  # fmt: skip
        self._assign(START - 50 * MS, "assigned", OWNED[0])
        for window in range(2):
            opened = START + (window + 1) * self.rounds * ROUND_NS // 3
            life: dict[str, Any] = {
                "window": window,
                "fault": "kill",
                "target": "leader",
                "nodes": ["broker-1"],
            }
            self._event(opened, "injector", "window", step="open", **life)
            self._event(opened + 20 * MS, "injector", "window", step="bite", bit=True, proof="leader changed",
                        measured={"ms": 12.5}, **life)  # fmt: skip
            self._event(opened + 50 * MS, "injector", "window", step="heal", **life)
            self._event(
                opened + 60 * MS,
                "injector",
                "window",
                step="healed",
                healed=True,
                proof="all in sync",
                **life,
            )

    def _pad_attempts(self) -> None:
        """Extend files of attempts to whole regions, as workers allocate them."""
        for session in SESSIONS:
            file = self._file(f"producer-{session}.0.{session}.attempts")
            file.flush()
            os.truncate(file.fileno(), -(-file.tell() // journal.REGION_BYTES) * journal.REGION_BYTES)

    def _end(self) -> None:
        self._event(self.end_t, "harness", "step", step="stopped")
        ends = {partition: int(self.base[partition]) for partition in range(PARTITIONS)}
        self._event(self.end_t, "harness", "drain", complete=True, detail="", topic=0, ends=ends)
        self._event(self.end_t, "final-reader", "reading_begins", partitions=[PARTITIONS])
        for partition in range(PARTITIONS):
            bounds = {"start": self.start, "end": self.base, "stable": self.stable}
            fields = {name: int(offsets[partition]) for name, offsets in bounds.items()}
            self._event(self.end_t, "final-reader", "bounds", when="before", partition=partition, **fields)
        for isolation, limit in (("read_uncommitted", self.base), ("read_committed", self.stable)):
            t = self.end_t + self.polled[isolation] // 1000 * MS
            for partition in range(PARTITIONS):
                end = int(limit[partition])
                self._event(
                    t, "final-reader", "reading", isolation=isolation, partition=partition, reached=end, until=end
                )  # fmt: skip
            self._event(t, "final-reader", "read", isolation=isolation, complete=True, detail="")
        self._pad_attempts()
        self._close()
        write_json(self.run.manifest, self._manifest())

    def _close(self) -> None:
        """Write the closing event of each writer, with its numbers of rows and lines."""
        t = self.end_t + max(self.polled.values()) // 1000 * MS
        for writer in list(self.lines):
            rows = {
                name: self.attempted[name] if name.endswith(".attempts") else file.tell() // DELIVERY.itemsize
                for name, file in self.files.items()
                if name.startswith(f"{writer}.") and not name.endswith(".events")
            }
            self._event(t, writer, "closed", rows=rows, lines=self.lines[writer] + 1)

    def _manifest(self) -> dict[str, Any]:
        scenario = {
            "name": self.run.path.parent.name, "mode": Mode.EXACTLY_ONCE, "guarantee": Mode.EXACTLY_ONCE,
            "judged_as": None, "expected": Verdict.VIOLATED if any(self.expected.values()) else Verdict.HELD, "control": False,
            "schedule": [{"fault": {"name": "kill"}}] * 2, "consumers": {"isolation": "read_committed"},
            "topic": {"partitions": PARTITIONS},
        }  # fmt: skip
        clock = {"monotonic_ns": START - 100 * MS, "wall": "2026-01-01T00:00:00+0000"}
        return {
            "version": journal.VERSION, "run_id": self.run.run_id, "scenario": scenario,
            "expected": scenario["expected"], "topic": "orders", "group": "orders-group", "clock": clock,
            "complete": True,
        }  # fmt: skip
