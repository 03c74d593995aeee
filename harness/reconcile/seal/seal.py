"""Sealing: the journals of a run folder become the Parquet tables that Spark reads.

One pass with numpy, a Parquet file a journal. The tables appear whole or not at all (made in a folder beside,
then renamed), and sealing again makes the same tables. A journal that cannot be trusted is an error that names the file
and the line, never a table with a part missing: a lost attempt would look like a phantom, a lost delivery
like an undelivered message.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.contracts import Mode, compacts
from harness.errors import LedgerError
from harness.ledger.message import run_number
from harness.ledger.packing import readable
from harness.ledger.rundir import RunDir, write_json
from harness.reconcile.seal import event_rows, sample, wholeness
from harness.reconcile.seal import rows as make
from harness.reconcile.seal.journals import CheckedJournals
from harness.reconcile.seal.merge import Reading, side_by_side
from harness.reconcile.seal.readings import Readings, readings_of
from harness.reconcile.seal.rows import Columns, Reach
from harness.reconcile.seal.schema import SCHEMAS
from harness.reconcile.seal.sealed import Observed, Sealed, SealedSession, behind_of, isolation_of
from harness.reconcile.seal.sealed_files import SealedFiles
from harness.reconcile.seal.wholeness import Wholeness

# Events that may be many, so only their number is reported.
COUNTED_ONLY = ("txn", "commit", "assignment", "bounds", "reading", "session", "ready", "opened", "closed")


def seal(run: RunDir) -> Sealed:
    """Write `tables/` of this run from its journals, which may be packed; older tables are replaced."""
    run.need_own_files()
    with readable(run) as opened:
        return _seal(opened)


def _seal(run: RunDir) -> Sealed:
    manifest = run.read_manifest()
    refuse_compacted(run, manifest["scenario"])
    draft = run.path / f".tables.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    if os.path.lexists(draft):
        raise LedgerError(f"{draft}: exists and cannot be removed; remove it")
    try:
        sealed = _Sealing(run, manifest, draft).all()
        write_json(draft / "sealed.json", sealed.to_json())
        if run.tables.exists():
            shutil.rmtree(run.tables)
        draft.rename(run.tables)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return sealed


def refuse_compacted(run: RunDir, scenario: Mapping[str, Any]) -> None:
    """Raise for a run on compacted topics (E8)."""
    parts = {
        "scenario.topic": scenario.get("topic") or {},
        "scenario.pipeline.output": (scenario.get("pipeline") or {}).get("output") or {},
    }
    for name, part in parts.items():
        if compacts(str((part.get("extra") or {}).get("cleanup.policy", ""))):
            raise LedgerError(
                f"{run.manifest}: {name} has cleanup.policy with compact: its acked records are deleted by design, and the "
                "run cannot be judged; run it with cleanup.policy=delete"
            )


class _Sealing:
    """One sealing: the tables of a run, in the order in which each needs those before it."""

    def __init__(self, run: RunDir, manifest: Mapping[str, Any], into: Path) -> None:
        self._run, self._manifest = run, manifest
        self._scenario = manifest["scenario"]
        run_id = manifest.get("run_id", run.run_id)
        zero_ns = manifest["clock"]["monotonic_ns"]
        number = int(np.uint64(run_number(run_id)).astype(np.int64))
        self._files = SealedFiles(into, number)
        self._sealed = Sealed(
            run=number,
            run_id=run_id,
            scenario=self._scenario.get("name", ""),
            zero_ns=zero_ns,
            group_isolation=self._scenario.get("consumers", {}).get("isolation", "read_committed"),
            topic_unchanged=manifest.get("topic_unchanged", True),
            topic_names=manifest.get("topics", [manifest.get("topic", "topic-0")]),
            transform=manifest.get("transform"),
            rows=self._files.rows,
        )
        self._journals = CheckedJournals(run, zero_ns)
        self._events, self._each = self._journals.events, self._journals.each
        self._whole = Wholeness(run.ledger, (), (), ())
        self._readers: dict[str, int] = {}  # name -> its number in the tables
        self._assignments: list[Columns] = []
        self._reach: Reach = {}
        self._readings = Readings()
        self._span: tuple[int, int] | None = None

    def all(self) -> Sealed:
        with self._files:
            self._need_whole()
            self._seal_events()
            self._seal_attempts()
            self._seal_deliveries()
            self._files.write("log", "final", self._log_pieces())
            self._seal_effects()
            self._sealed.torn, gaps = self._journals.torn()
            self._sealed.gaps += gaps
            self._files.write_empty()
        if not self._manifest.get("complete", False):
            self._sealed.gaps.append("the run did not come to its end: its harness was stopped")
        return self._sealed

    def _need_whole(self) -> None:
        closed, opened = self._each("closed", wholeness.closing), self._each("opened", wholeness.opening)
        self._whole = Wholeness(self._run.ledger, closed, self._each("worker", wholeness.life), opened)
        self._whole.need(self._journals.lines, bool(self._manifest.get("complete", False)))

    def _seal_events(self) -> None:
        sessions = self._each("session", event_rows.session)
        commits = self._each("commit", lambda e: event_rows.commit(e, self._reader(e["writer"])))
        self._readings = readings_of(
            self._each("reading_begins", event_rows.reading_begins),
            self._each("bounds", event_rows.bounds),
            self._each("reading", event_rows.reading),
        )
        # A harness that was killed before it wrote its last manifest has not recorded that partitions were added.
        partitions = (self._scenario.get("topic") or {}).get("partitions")
        self._sealed.topic_unchanged &= self._readings.unchanged(partitions)
        drained = self._each("drain", event_rows.drain)
        windows = event_rows.windows(self._each("window", dict))
        self._assignments = self._each(
            "assignment", lambda e: event_rows.assignment(e, self._reader(e["writer"]))
        )
        wholeness.need_one_session_each(self._events["session"])
        group = self._sealed.group_isolation
        self._reach = event_rows.reach(commits, drained, lambda place: self._readings.whole(place, group))
        if windows:
            self._span = min(w["opened"] for w in windows), max(w["closed"] for w in windows)
        self._rows("sessions", sessions)
        transactions = self._each("txn", event_rows.transaction)
        transactions += event_rows.fenced(self._events["session"], self._events["ready"], transactions)
        self._rows("transactions", transactions)
        self._rows("commits", commits)
        self._rows("assignments", self._assignments)
        self._rows("bounds", self._readings.rows(self._owed_isolation, group))
        self._rows("windows", windows)
        self._rows("runs", [self._run_row()])
        every = sorted((e for kind in self._events.values() for e in kind), key=lambda e: (e["t"], e["_at"]))
        self._rows("events", [event_rows.event(e) for e in every])
        sealed, in_flight = self._sealed, {s["in_flight"] for s in sessions}
        sealed.not_asked = self._readings.not_asked(
            sealed.topic_names, self._owed_isolation, group,
            transactions=bool(transactions), pipeline=sealed.transform is not None,
        )  # fmt: skip
        sealed.rebalances = sum(1 for a in self._assignments if a["how"].startswith("assigned"))
        sealed.commits = len(self._events["commit"])
        sealed.transactions = event_rows.ends(self._events)
        sealed.in_flight = None if None in in_flight else max(in_flight, default=None)
        sealed.events = [
            {k: v for k, v in e.items() if k != "_at"} for e in every if e["event"] not in COUNTED_ONLY
        ]

    def _reader(self, name: str) -> int:
        return self._readers.setdefault(name, len(self._readers))

    def _run_row(self) -> Columns:
        same = ("run_id", "scenario", "zero_ns", "topic_unchanged", "group_isolation")
        row = {name: getattr(self._sealed, name) for name in same}
        return {**row, "topic_name": self._sealed.topic_names[0]}

    @property
    def _owed_isolation(self) -> str:
        """Return the isolation of the log that is owed: exactly-once owes committed records, other modes all acked ones."""
        return "read_committed" if self._scenario["mode"] == Mode.EXACTLY_ONCE else "read_uncommitted"

    # --- journals ---

    def _seal_attempts(self) -> None:
        sampled: list[sample.SessionRows] = []
        for path, number, pieces in self._journals.attempts():
            session = self._journals.sessions[number]
            acks = str(session.get("acks"))
            columns = (make.attempts(rows, first, number, acks, self._span) for first, rows in pieces)
            count = self._files.write("attempts", path.stem, columns)
            self._whole.need_attempts(path, count)
            producer, incarnation = str(session["producer"]), int(session["incarnation"])
            self._sealed.sessions.append(SealedSession(number, producer, incarnation, count))
            sampled.append(sample.SessionRows(path, number, acks, count))
        sample.write(self._files.folder, sampled)

    def _seal_deliveries(self) -> None:
        declared = self._each("observer", lambda e: {"name": e["writer"], "isolation": isolation_of(e)})
        isolations = {str(one["name"]): str(one["isolation"]) for one in declared}
        behind = {str(e["writer"]): behind_of(e) for e in self._events["reached"]}
        for path, pieces in self._journals.deliveries():
            reader = self._reader(path.stem)
            touched = make.touched(self._assignments, reader)
            if path.stem in isolations:
                observed = Observed(reader, path.stem, isolations[path.stem], behind=behind.get(path.stem))
                self._sealed.observers.append(observed)
                pieces = map(observed.add, pieces)
            else:
                self._sealed.readers += 1
            columns = (make.deliveries(piece, reader, touched) for piece in pieces)
            self._files.write("deliveries", path.stem, columns)
        self._sealed.reader_names = list(self._readers)
        self._rows("readers", [
            {
                "reader": number, "name": name, "isolation": isolations.get(name, self._sealed.group_isolation),
                "observer": name in isolations,
            }
            for name, number in self._readers.items()
        ])  # fmt: skip

    def _log_pieces(self) -> Iterator[Columns]:
        checked = {
            isolation: [Reading(journal, self._journals.records(journal)) for journal in journals]
            for isolation, journals in self._journals.logs().items()
        }
        for readings in side_by_side(checked):
            rows, more = make.log(readings, self._owed_isolation, self._sealed.group_isolation, self._reach)
            self._sealed.in_log += int(np.count_nonzero(more["promised"]))
            self._sealed.in_log_uncommitted += int(np.count_nonzero(more["uncommitted"]))
            yield {**make.records(rows), **more}

    def _seal_effects(self) -> None:
        """Write the table `effects`: the origins of records that pipelines made, in the log that is owed."""
        for path, pieces in self._journals.effects(self._owed_isolation):
            self._files.write("effects", path.stem, map(make.effects, pieces))
        if self._owed_isolation == "read_uncommitted":
            return
        stable = {place: bounds[2] for place, bounds in self._readings.bounds.items()}
        for path, pieces in self._journals.effects("read_uncommitted"):
            behind = (make.behind(rows, stable) for rows in pieces)
            late = (make.effects(rows, late=True) for rows in behind if len(rows))
            self._files.write("effects", path.stem, late)

    def _rows(self, table: str, rows: list[Columns]) -> None:
        columns = {name: [row.get(name) for row in rows] for name in SCHEMAS[table].names}
        self._files.write(table, "events", [columns])
