"""Ledgers of any size, generated as sealed tables: journals of 10^9 attempts, four rows of 50 bytes each, would take 200 GB.

The history is that of benchmarks.generated.history, and the tables are those that sealing would make of its journals (tested). They
are written piece by piece in files of ten million rows, so memory does not grow with the number of records.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.generated.history import PARTITIONS, READERS, Rows
from benchmarks.generated.run_folders import Generation, Made, new_run
from harness.ledger.message import run_number
from harness.ledger.rundir import write_json
from harness.reconcile.seal import event_rows
from harness.reconcile.seal import rows as make
from harness.reconcile.seal.readings import readings_of
from harness.reconcile.seal.schema import SCHEMAS
from harness.reconcile.seal.seal import COUNTED_ONLY
from harness.reconcile.seal.sealed import Sealed, SealedSession
from harness.reconcile.seal.sealed_files import GROUP_ROWS

FILE_ROWS = 10_000_000
ISOLATION = "read_committed"  # what is owed, and what the group reads
_BUFFERED = 100_000  # rows of small tables


def generate_tables(
    folder: Path, records: int, *, plants: int = 7, seed: int = 1, file_rows: int = FILE_ROWS
) -> Made:
    """Write `folder/tables/made/tables`: a run without journals, sealed."""
    return _Tables(new_run(folder, "tables"), records, plants, 0, seed, file_rows=file_rows).all()


class _Table:
    """One stream of rows of a table, in files of `file_rows` rows."""

    def __init__(self, folder: Path, table: str, stream: str, file_rows: int) -> None:
        self._file_rows = file_rows
        self._folder, self._stream, self._schema = folder / table, stream, SCHEMAS[table]
        self._folder.mkdir(parents=True, exist_ok=True)
        self._waiting: list[pa.Table] = []
        self._file: pq.ParquetWriter | None = None
        self._files = self._in_file = self.rows = 0

    def add(self, columns: dict[str, Any], run: int) -> None:
        made = {**columns, "run": np.full(len(columns[self._schema.names[-1]]), run, dtype=np.int64)}
        arrays = [pa.array(made[column.name], type=column.type) for column in self._schema]
        self._waiting.append(pa.Table.from_arrays(arrays, schema=self._schema))
        if sum(one.num_rows for one in self._waiting) >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._file is None:
            path = self._folder / f"{self._stream}.{self._files:04}.parquet"
            self._file = pq.ParquetWriter(path, self._schema)
            self._files += 1
        together = pa.concat_tables(self._waiting) if self._waiting else self._schema.empty_table()
        self._file.write_table(together)
        self._waiting = []
        self.rows += together.num_rows
        self._in_file += together.num_rows
        if self._in_file >= self._file_rows:
            self._end_file()

    def _end_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._in_file = None, 0

    def close(self) -> None:
        if self._waiting or not self._files:
            self._flush()
        self._end_file()


@dataclass
class _Tables(Generation):
    file_rows: int = FILE_ROWS

    def __post_init__(self) -> None:
        super().__post_init__()
        self.number = int(np.uint64(run_number(self.run.run_id)).astype(np.int64))
        self.tables: dict[tuple[str, str], _Table] = {}
        self.small: dict[str, list[dict[str, Any]]] = defaultdict(list)  # rows that are not written yet
        self.events: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.counted: Counter[str] = Counter()
        self.assignments: list[dict[str, Any]] = []
        self.in_log = self.in_log_uncommitted = 0

    # --- rows ---

    def _table(self, name: str, stream: str) -> _Table:
        if (name, stream) not in self.tables:
            self.tables[name, stream] = _Table(self.run.tables, name, stream, self.file_rows)
        return self.tables[name, stream]

    def _store_attempts(self, session: int, rows: Rows) -> None:
        windows = event_rows.windows(self.events["window"])
        span = min(w["opened"] for w in windows), max(w["closed"] for w in windows)
        name = f"producer-{session}.0.{session}"
        columns = make.attempts(rows, self.attempted[name], session, "all", span)
        self._table("attempts", name).add(columns, self.number)
        self.attempted[name] += len(rows)

    def _store_deliveries(self, reader: int, name: str, rows: Rows) -> None:
        columns = make.deliveries(rows, reader, make.touched(self.assignments, reader))
        self._table("deliveries", name).add(columns, self.number)

    def _store_log(self, readings: dict[str, Rows]) -> None:
        """A stream for each partition, since sealing puts them in order of partitions and offsets."""
        drained = {
            (0, partition): event_rows.FOREVER for partition in range(PARTITIONS)
        }  # to the end of each
        for partition in range(PARTITIONS):
            mine = {name: rows[rows["partition"] == partition] for name, rows in readings.items()}
            rows, more = make.log(mine, ISOLATION, ISOLATION, drained)
            self.in_log += int(np.count_nonzero(more["promised"]))
            self.in_log_uncommitted += int(np.count_nonzero(more["uncommitted"]))
            self._table("log", f"final-{partition}").add({**make.records(rows), **more}, self.number)

    # --- events ---

    def _piece(self, first: int, stop: int, copies: list[int]) -> None:
        if first <= self.middle < stop:
            super()._record_rebalance()  # deliveries of this piece have to know
        super()._piece(first, stop, copies)

    def _record_rebalance(self) -> None:
        """Do nothing: the rebalance is recorded before its piece."""

    def _event(self, t: int, writer: str, kind: str, **fields: Any) -> None:
        event = {"t": int(t), "event": kind, "writer": writer, **fields}
        self.counted[kind] += 1
        if kind == "txn":
            self._small("transactions", [event_rows.transaction(event)])
            self.counted["aborted"] += fields["step"] == "ended" and fields["did"] == "abort"
        elif kind == "commit":
            self._small("commits", event_rows.commit(event, READERS.index(writer)))
        elif kind == "assignment":
            self.assignments.append(event_rows.assignment(event, READERS.index(writer)))
        else:
            self.events[kind].append(event)

    def _small(self, table: str, rows: list[dict[str, Any]]) -> None:
        self.small[table] += rows
        if len(self.small[table]) >= _BUFFERED:
            self._write_small(table)

    def _write_small(self, table: str) -> None:
        rows = self.small.pop(table, [])
        columns = {name: [row.get(name) for row in rows] for name in SCHEMAS[table].names}
        self._table(table, "events").add(columns, self.number)

    # --- the end ---

    def _pad_attempts(self) -> None:
        """Do nothing: there are no journals."""

    def _close(self) -> None:
        readings = readings_of(
            [event_rows.reading_begins(e) for e in self.events["reading_begins"]],
            [event_rows.bounds(e) for e in self.events["bounds"]],
            [event_rows.reading(e) for e in self.events["reading"]],
        )
        self.small["sessions"] = [event_rows.session(e) for e in self.events["session"]]
        self.small["bounds"] = readings.rows(ISOLATION, ISOLATION)
        self.small["assignments"] = self.assignments
        self.small["windows"] = event_rows.windows(self.events["window"])
        self.small["readers"] = [
            {"reader": number, "name": name, "isolation": ISOLATION, "observer": False}
            for number, name in enumerate(READERS)
        ]
        manifest = self._manifest()
        self.small["runs"] = [{
            "run_id": self.run.run_id, "scenario": manifest["scenario"]["name"], "zero_ns": self._zero_ns,
            "topic_name": manifest["topic"], "topic_unchanged": True, "group_isolation": ISOLATION,
        }]  # fmt: skip
        for name in SCHEMAS:
            if not any(table == name for table, _ in self.tables) or name in self.small:
                self._write_small(name)
        for table in self.tables.values():
            table.close()
        write_json(self.run.tables / "sealed.json", self._sealed().to_json())

    @property
    def _zero_ns(self) -> int:
        return int(self._manifest()["clock"]["monotonic_ns"])

    def _sealed(self) -> Sealed:
        rows: Counter[str] = Counter()
        for (name, _), table in self.tables.items():
            rows[name] += table.rows
        rare = [e for kind, found in self.events.items() if kind not in COUNTED_ONLY for e in found]
        return Sealed(
            run=self.number, run_id=self.run.run_id, scenario=self.run.path.parent.name, zero_ns=self._zero_ns,
            group_isolation=ISOLATION, topic_unchanged=True, topic_names=["orders"], reader_names=list(READERS), rows=rows,
            in_log=self.in_log, in_log_uncommitted=self.in_log_uncommitted, readers=len(READERS),
            rebalances=sum(one["how"] == "assigned" for one in self.assignments), commits=self.counted["commit"],
            transactions=Counter(aborted_by_intent=self.counted["aborted"], aborted_by_fault=0, timed_out=0, fencings=0),
            in_flight=5, sessions=[
                SealedSession(int(e["session"]), e["producer"], 0, self.attempted[f"{e['writer']}.{e['session']}"])
                for e in self.events["session"]
            ],
            events=sorted(rare, key=lambda e: (e["t"], e["writer"])),
        )  # fmt: skip
