"""Seals a ledger: the journals of a run folder become the Parquet tables that Spark reads.

One pass with numpy, a Parquet file a journal. The tables appear whole or not at all (made in a folder beside,
then renamed), and sealing again gives the same tables. What cannot be trusted is an error that names the file
and the line, never a table with a part missing: a lost attempt would look like a phantom, a lost delivery
like an undelivered message.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from harness import ledger
from harness.contracts import Mode, Outcome
from harness.errors import LedgerError
from harness.message import message_id, run_number
from harness.reconcile.schema import SCHEMAS
from harness.rundir import RunDir, write_json

FOREVER = (1 << 63) - 1
NOTES = "notes.json"
ISOLATIONS = ("read_uncommitted", "read_committed")

Event = dict[str, Any]
Columns = dict[str, Any]


@dataclass(frozen=True)
class Notes:
    """What was cut off. `torn` is the normal end of a worker that was killed; `gaps` cast doubt on the run."""

    torn: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)


def seal(run: RunDir) -> Notes:
    """Write `tables/` of this run anew from its journals."""
    manifest = _manifest(run)
    if not run.ledger.is_dir():
        raise LedgerError(f"{run.ledger}: there is no such folder (is this a whole run folder?)")
    draft = run.path / f".tables.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        notes = _Sealing(run, manifest, draft).all()
        write_json(draft / NOTES, vars(notes))
        if run.tables.exists():
            shutil.rmtree(run.tables)
        draft.rename(run.tables)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return notes


def _manifest(run: RunDir) -> Mapping[str, Any]:
    manifest = run.read_manifest()
    version = manifest.get("version")
    if version != ledger.VERSION:
        raise LedgerError(f"{run.manifest}: ledger version {version}, this program reads version {ledger.VERSION}")
    try:
        int(manifest["clock"]["monotonic_ns"])
        Mode(manifest["scenario"]["mode"])
    except (KeyError, TypeError, ValueError) as error:
        raise LedgerError(f"{run.manifest}: not the manifest of a run: {type(error).__name__} {error}") from error
    return manifest


class _Sealing:
    """One sealing: reads the events first, since they say how the other journals are to be read."""

    def __init__(self, run: RunDir, manifest: Mapping[str, Any], into: Path) -> None:
        self._run, self._manifest, self._into = run, manifest, into
        run_id = str(manifest.get("run_id", run.run_id))
        self._number = int(np.uint64(run_number(run_id)).astype(np.int64))
        self._run_id = run_id
        self._notes = Notes()
        self._events: dict[str, list[Event]] = defaultdict(list)  # by kind
        self._torn: list[tuple[str, str]] = []  # writer, what
        self._sessions: dict[int, Event] = {}
        self._seen_sessions: set[int] = set()

    def all(self) -> Notes:
        for name, schema in SCHEMAS.items():
            (self._into / name).mkdir(parents=True)
            self._write(name, "none", {column: [] for column in schema.names}, 0)
        self._read_events()
        self._seal_events()
        self._seal_attempts()
        self._seal_records()
        self._judge_torn()
        if not self._manifest.get("complete", False):
            self._notes.gaps.append("the run did not come to its end: its harness was stopped")
        return self._notes

    # --- events ---

    def _read_events(self) -> None:
        files = sorted(self._run.ledger.glob("*.events"))
        if not files:
            raise LedgerError(f"{self._run.ledger}: no *.events file is there (is this a whole run folder?)")
        for path in files:
            for number, event in enumerate(ledger.read_events(path), start=1):
                kind = event["event"]
                if kind == "torn":
                    self._torn.append((path.stem, f"{path.name}: line {event['line']} is torn"))
                    continue
                if not isinstance(event.get("t"), int):
                    raise LedgerError(f"{path}:{number}: not a ledger line (no time)")
                self._events[kind].append({**event, "writer": event.get("writer", path.stem), "_at": f"{path}:{number}"})

    def _each(self, kind: str, columns: Callable[[Event], Columns | list[Columns]]) -> list[Columns]:
        """The rows made of every event of a kind; an event without what its row needs is named."""
        rows: list[Columns] = []
        for event in self._events[kind]:
            try:
                made = columns(event)
            except (KeyError, TypeError, ValueError) as error:
                where = event["_at"]
                raise LedgerError(f"{where}: a {kind} event without a good {error}") from error
            rows += made if isinstance(made, list) else [made]
        return rows

    def _seal_events(self) -> None:
        for event in self._events["session"]:
            self._sessions[int(event["session"])] = event
        self._rows("sessions", self._each("session", _session))
        self._rows("transactions", self._each("txn", _transaction))
        self._rows("commits", self._each("commit", _commit))
        self._rows("assignments", self._each("assignment", _assignment))
        self._rows("bounds", self._each("bounds", _bounds))
        self._rows("windows", _windows(self._each("window", dict)))
        self._rows("runs", [self._run_row()])
        every = sorted((e for kind in self._events.values() for e in kind), key=lambda e: (e["t"], e["_at"]))
        self._rows("events", [_event(e) for e in every])

    def _run_row(self) -> Columns:
        scenario = self._manifest["scenario"]
        drains = self._events["drain"]
        return {
            "run_id": self._run_id,
            "scenario": str(scenario.get("name", "")),
            "zero_ns": int(self._manifest["clock"]["monotonic_ns"]),
            "topic_name": str(self._manifest.get("topic", "topic-0")),
            "topic_unchanged": bool(self._manifest.get("topic_unchanged", True)),
            "transactional": scenario["mode"] == Mode.EXACTLY_ONCE,
            "group_isolation": str(scenario.get("consumers", {}).get("isolation", "read_committed")),
            "drained": bool(drains) and all(bool(d.get("complete")) for d in drains),
        }

    # --- journals ---

    def _seal_attempts(self) -> None:
        for path in sorted(self._run.ledger.glob("*.attempts")):
            writer, _, number = path.stem.rpartition(".")
            if not number.isdigit():
                raise LedgerError(f"{path}: the name of an attempts file is <writer>.<session>.attempts")
            self._need_events_of(writer, path)
            self._need_whole_regions(path, writer)
            rows = ledger.read_attempts(path)
            session = self._sessions.get(int(number))
            if session is None and len(rows):
                raise LedgerError(f"{path}: no session event tells what session {number} was")
            if session is not None:
                self._seen_sessions.add(int(number))
                columns = _attempts(rows, int(number), acks=str(session.get("acks")))
                self._write("attempts", path.stem, columns, len(rows))

    def _need_whole_regions(self, path: Path, writer: str) -> None:
        # The file grows by whole regions before they are used: any other size was cut, and attempts are missing.
        left_over = path.stat().st_size % ledger._REGION_BYTES
        if left_over:
            raise LedgerError(f"{path}: cut off, {left_over} bytes of its last region are there: not a whole ledger")

    def _seal_records(self) -> None:
        names: dict[str, str] = {}
        for path in sorted(self._run.ledger.glob("*.deliveries")):
            self._need_events_of(path.stem, path)
            self._write_records("deliveries", path, path.stem, {})
            names[path.stem] = path.name
        for event in self._events["commit"]:
            if event["writer"] not in names:
                raise LedgerError(f"{self._run.ledger / event['writer']}.deliveries: missing, but {event['_at']} committed")
        seen = set()
        for path in sorted(self._run.ledger.glob("*.log")):
            writer, _, isolation = path.stem.rpartition(".")
            if isolation not in ISOLATIONS:
                raise LedgerError(f"{path}: the name of a final read is <reader>.<isolation>.log")
            self._need_events_of(writer, path)
            self._write_records("log", path, writer, {"isolation": isolation})
            seen.add(isolation)
        for event in self._events["read"]:
            if event.get("complete") and event.get("isolation") not in seen:
                raise LedgerError(f"{self._run.ledger}: no *.{event.get('isolation')}.log, but {event['_at']} read one")

    def _write_records(self, table: str, path: Path, reader: str, more: Mapping[str, str]) -> None:
        rows, torn = ledger.read_deliveries(path)
        if torn:
            self._torn.append((reader, f"{path.name}: its last row is torn ({torn} bytes)"))
        unknown = set(np.unique(rows["session"][rows["flags"] == 0]).tolist()) - self._seen_sessions
        for session in sorted(unknown & self._sessions.keys()):
            writer = self._sessions[session]["writer"]
            raise LedgerError(f"{self._run.ledger / writer}.{session}.attempts: missing, but {path.name} has its records")
        columns = {**_records(rows), "reader": np.full(len(rows), reader), **more}
        columns |= {name: np.full(len(rows), value) for name, value in more.items()}
        self._write(table, path.stem, columns, len(rows))

    def _need_events_of(self, writer: str, path: Path) -> None:
        if not (self._run.ledger / f"{writer}.events").exists():
            raise LedgerError(f"{self._run.ledger / writer}.events: missing, but {path.name} of the same writer is there")

    def _judge_torn(self) -> None:
        """A worker that was killed may leave a torn end: what it was writing had not happened yet."""
        killed = [str(w.get("name")) for w in self._events["worker"] if w.get("state") in ("killed", "failed")]
        for writer, what in self._torn:
            by_kill = any(writer == name or writer.startswith(f"{name}.") for name in killed)
            (self._notes.torn if by_kill else self._notes.gaps).append(
                f"{what}, as a killed worker leaves it" if by_kill else f"{what}, and nobody killed its writer"
            )

    # --- Parquet ---

    def _rows(self, table: str, rows: list[Columns]) -> None:
        columns = {name: [row.get(name) for row in rows] for name in SCHEMAS[table].names}
        self._write(table, "events", columns, len(rows))

    def _write(self, table: str, part: str, columns: Mapping[str, Any], count: int) -> None:
        schema = SCHEMAS[table]
        made = {**columns, "run": np.full(count, self._number, dtype=np.int64)}
        arrays = [pa.array(made[f.name], type=f.type) for f in schema]
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), self._into / table / f"{part}.parquet")


def _attempts(rows: npt.NDArray[np.void], session: int, acks: str) -> Columns:
    acked = rows["outcome"] == Outcome.ACKED
    # With acks=0 nobody answered: an offset told then is made up by the client.
    placed = acked & (rows["offset"] >= 0) & (rows["told_partition"] >= 0) & (acks != "0")
    return {
        "session": np.full(len(rows), session, dtype=np.int64),
        "seq": np.arange(len(rows), dtype=np.int64),
        "t": rows["t_attempt"],
        **{name: _wide(rows[name]) for name in ("topic", "partition", "key", "txn", "outcome", "error")},
        "t_outcome": pa.array(rows["t_outcome"], mask=rows["t_outcome"] < 0),
        "told_partition": pa.array(_wide(rows["told_partition"]), mask=rows["told_partition"] < 0, type=pa.int32()),
        "offset": pa.array(rows["offset"], mask=~placed),
    }


def _records(rows: npt.NDArray[np.void]) -> Columns:
    return {name: _wide(rows[name]) for name in SCHEMAS["deliveries"].names if name not in ("run", "reader")}


def _wide(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Contiguous and signed, as Arrow and Spark want it."""
    return np.ascontiguousarray(values, dtype=np.int64)


def _session(e: Event) -> Columns:
    in_flight = e.get("in_flight")
    return {
        "session": int(e["session"]),
        "sender": message_id(str(e["producer"]), int(e["incarnation"]), 0).rpartition("-")[0],
        "acks": str(e["acks"]),
        "in_flight": None if in_flight is None else int(in_flight),
        "idempotent": bool(e.get("idempotent")),
        "t": e["t"],
    }


def _transaction(e: Event) -> Columns:
    did = e.get("did") or (e.get("intent") if e["step"] == "end" else None)
    outcome = e.get("outcome")
    return {
        "t": e["t"], "session": int(e["session"]), "txn": int(e["txn"]), "step": e["step"], "did": did,
        "outcome": None if outcome is None else int(outcome),
    }  # fmt: skip


def _commit(e: Event) -> list[Columns]:
    base = {"t": e["t"], "reader": e["writer"], "topic": int(e.get("topic", 0)), "outcome": int(e["outcome"])}
    return [{**base, "partition": int(p), "offset": int(o)} for p, o in e["offsets"].items()]


def _assignment(e: Event) -> Columns:
    return {
        "t": e["t"], "reader": e["writer"], "how": e["how"], "topic": int(e.get("topic", 0)),
        "partitions": [int(p) for p in e["partitions"]],
    }  # fmt: skip


def _bounds(e: Event) -> Columns:
    offsets = {name: int(e[name]) for name in ("partition", "start", "end", "stable")}
    return {"topic": int(e.get("topic", 0)), **offsets}


def _windows(events: list[Columns]) -> list[Columns]:
    times: dict[int, dict[str, int]] = defaultdict(dict)
    for e in events:
        times[int(e["window"])].setdefault(e["step"], e["t"])
    return [
        {"window": w, "opened": at["open"], "closed": at.get("healed", at.get("heal", FOREVER))}
        for w, at in sorted(times.items())
        if "open" in at
    ]


def _event(e: Event) -> Columns:
    fields = {name: value for name, value in e.items() if name != "_at"}
    return {"t": e["t"], "event": e["event"], "writer": e["writer"], "fields": json.dumps(fields)}
