"""Sealing: the journals of a run folder become the Parquet tables that Spark reads.

One pass with numpy, a Parquet file a journal. The tables appear whole or not at all (made in a folder beside,
then renamed), and sealing again makes the same tables. A journal that cannot be trusted is an error that names the file
and the line, never a table with a part missing: a lost attempt would look like a phantom, a lost delivery
like an undelivered message.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.contracts import Mode, compacts
from harness.errors import LedgerError
from harness.ledger import journal as ledger_journal
from harness.ledger.events import read_events
from harness.ledger.manifest import ISOLATIONS
from harness.ledger.message import run_number
from harness.ledger.packing import readable
from harness.ledger.row_checks import LONGEST_NS, NO_CLOCK, need_during, need_sound, need_whole_regions
from harness.ledger.rundir import RunDir, write_json
from harness.reconcile.seal import rows as make
from harness.reconcile.seal import wholeness
from harness.reconcile.seal.merge import PIECE, Reading, side_by_side
from harness.reconcile.seal.readings import Readings, readings_of
from harness.reconcile.seal.rows import Columns, Reach
from harness.reconcile.seal.schema import SCHEMAS
from harness.reconcile.seal.sealed import Event, Observed, Sealed, SealedSession, behind_of, isolation_of
from harness.reconcile.seal.sealed_files import SealedFiles
from harness.reconcile.seal.wholeness import Wholeness

_COMPARED_TIMES = 1000  # rows of a piece whose time is compared with that of their attempt
COUNTED_ONLY = (
    "txn",
    "commit",
    "assignment",
    "bounds",
    "reading",
    "session",
    "ready",
    "opened",
    "closed",
)  # may be many, so only their number is reported


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


def _once(events: Iterable[tuple[int, Event]]) -> Iterator[tuple[int, Event]]:
    """Yield the events without repeated lines: one writer does nothing twice in one nanosecond."""
    at: dict[str, list[Event]] = defaultdict(list)
    for number, event in events:
        same_time = at[str(event.get("t"))]
        if event not in same_time:
            same_time.append(event)
            yield number, event


def _in_time(path: Path, first: int, rows: npt.NDArray[np.void], zero_ns: int) -> npt.NDArray[np.void]:
    """Return the same rows; raise if an outcome is earlier than its attempt."""
    need_sound(path, first, rows)
    early = (rows["t_outcome"] >= 0) & (rows["t_outcome"] < rows["t_attempt"])
    wrong = np.flatnonzero(early | (rows["t_attempt"] < 0))
    if len(wrong):
        sent, answered = (rows[name][wrong[0]] for name in ("t_attempt", "t_outcome"))
        raise LedgerError(
            f"{path}: message {first + wrong[0]} was sent at {sent} and answered at {answered}: {NO_CLOCK}"
        )
    for name in ("t_attempt", "t_outcome"):
        need_during(path, first, rows, name, zero_ns)
    return rows


class _Sealing:
    """One sealing. It reads the events first, because they say how to read the other journals."""

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
        self._events: dict[str, list[Event]] = defaultdict(list)  # by kind
        self._torn: list[tuple[str, str]] = []  # writer, what
        self._lines: Counter[str] = Counter()  # events of each writer
        self._whole = Wholeness(run.ledger, (), (), ())
        self._sessions: dict[int, Event] = {}
        self._attempted: set[int] = set()  # sessions whose attempts are there
        self._readers: dict[str, int] = {}  # name -> its number in the tables
        self._assignments: list[Columns] = []
        self._reach: Reach = {}
        self._readings = Readings()
        self._span: tuple[int, int] | None = None

    def all(self) -> Sealed:
        with self._files:
            self._read_events()
            self._need_whole()
            self._seal_events()
            self._seal_attempts()
            self._seal_deliveries()
            self._seal_log()
            self._seal_effects()
            self._judge_torn()
            self._files.write_empty()
        if not self._manifest.get("complete", False):
            self._sealed.gaps.append("the run did not come to its end: its harness was stopped")
        return self._sealed

    # --- events ---

    def _read_events(self) -> None:
        files = self._run.journals("*.events")
        if not files:
            raise LedgerError(f"{self._run.ledger}: no *.events file is there (is this a whole run folder?)")
        for path in files:
            writer = path.stem
            for number, event in _once(read_events(path)):
                kind = event["event"]
                if kind == "torn":
                    self._torn.append((writer, f"{path.name}: line {event['line']} is torn"))
                    continue
                if abs(event["t"] - self._sealed.zero_ns) > LONGEST_NS:
                    raise LedgerError(
                        f"{path}:{number}: time {event['t']} is more than a week from the manifest's clock: {NO_CLOCK}"
                    )
                self._lines[writer] += 1
                self._events[kind].append({**event, "_at": f"{path}:{number}"})

    def _need_whole(self) -> None:
        closed, opened = (
            self._each("closed", wholeness.closing),
            self._each("opened", wholeness.opening),
        )
        self._whole = Wholeness(self._run.ledger, closed, self._each("worker", wholeness.life), opened)
        self._whole.need(self._lines, bool(self._manifest.get("complete", False)))

    def _each(self, kind: str, columns: Callable[[Event], Columns | list[Columns]]) -> list[Columns]:
        """Return the rows made of every event of a kind; raise for an event without a field that its row needs."""
        rows: list[Columns] = []
        for event in self._events[kind]:
            try:
                made = columns(event)
            except (KeyError, TypeError, ValueError) as error:
                where = event["_at"]
                raise LedgerError(f"{where}: {kind} event with a missing or wrong field: {error}") from error
            rows += made if isinstance(made, list) else [made]
        return rows

    def _seal_events(self) -> None:
        sessions = self._each("session", make.session)
        commits = self._each("commit", lambda e: make.commit(e, self._reader(e["writer"])))
        self._readings = readings_of(
            self._each("reading_begins", make.reading_begins),
            self._each("bounds", make.bounds),
            self._each("reading", make.reading),
        )
        # A harness that was killed before it wrote its last manifest has not recorded that partitions were added.
        partitions = (self._scenario.get("topic") or {}).get("partitions")
        self._sealed.topic_unchanged &= self._readings.unchanged(partitions)
        drained = self._each("drain", make.drain)
        windows = make.windows(self._each("window", dict))
        assignments = self._each("assignment", lambda e: make.assignment(e, self._reader(e["writer"])))
        self._assignments = assignments
        wholeness.need_one_session_each(self._events["session"])
        self._sessions = {int(event["session"]): event for event in self._events["session"]}
        group = self._sealed.group_isolation
        self._reach = make.reach(commits, drained, lambda place: self._readings.whole(place, group))
        if windows:
            self._span = min(w["opened"] for w in windows), max(w["closed"] for w in windows)
        self._rows("sessions", sessions)
        transactions = self._each("txn", make.transaction)
        transactions += make.fenced(self._events["session"], self._events["ready"], transactions)
        self._rows("transactions", transactions)
        self._rows("commits", commits)
        self._rows("assignments", assignments)
        self._rows("bounds", self._readings.rows(self._owed_isolation, group))
        self._rows("windows", windows)
        self._rows("runs", [self._run_row()])
        every = sorted((e for kind in self._events.values() for e in kind), key=lambda e: (e["t"], e["_at"]))
        self._rows("events", [make.event(e) for e in every])
        sealed, in_flight = self._sealed, {s["in_flight"] for s in sessions}
        sealed.not_asked = self._readings.not_asked(
            sealed.topic_names, self._owed_isolation, group,
            transactions=bool(transactions), pipeline=sealed.transform is not None,
        )  # fmt: skip
        sealed.rebalances = sum(1 for a in assignments if a["how"].startswith("assigned"))
        sealed.commits = len(self._events["commit"])
        sealed.transactions = make.ends(self._events)
        sealed.in_flight = None if None in in_flight else max(in_flight, default=None)
        sealed.events = [
            {k: v for k, v in e.items() if k != "_at"} for e in every if e["event"] not in COUNTED_ONLY
        ]

    def _reader(self, name: str) -> int:
        return self._readers.setdefault(name, len(self._readers))

    def _run_row(self) -> Columns:
        return {
            "run_id": self._sealed.run_id,
            "scenario": self._sealed.scenario,
            "zero_ns": self._sealed.zero_ns,
            "topic_name": self._sealed.topic_names[0],
            "topic_unchanged": self._sealed.topic_unchanged,
            "group_isolation": self._sealed.group_isolation,
        }

    @property
    def _owed_isolation(self) -> str:
        """Return the isolation of the log that is owed: exactly-once owes committed records, other modes all acked ones."""
        return "read_committed" if self._scenario["mode"] == Mode.EXACTLY_ONCE else "read_uncommitted"

    # --- journals ---

    def _seal_attempts(self) -> None:
        for path in self._run.journals("*.attempts"):
            writer, _, number = path.stem.rpartition(".")
            if not re.fullmatch("[0-9]{1,10}", number):
                raise LedgerError(f"{path}: the name of an attempts file is <writer>.<session>.attempts")
            self._need_events_of(writer, path)
            need_whole_regions(path)
            session = self._sessions.get(int(number))
            pieces = ledger_journal.attempt_pieces(path)
            if session is None and next(pieces, None) is not None:
                raise LedgerError(f"{path}: there is no event `session` for session {number}")
            if session is not None:
                self._attempted.add(int(number))
                acks = str(session.get("acks"))
                count = self._files.write("attempts", path.stem, (
                    make.attempts(_in_time(path, first, rows, self._sealed.zero_ns), first, int(number), acks, self._span)
                    for first, rows in pieces
                ))  # fmt: skip
                self._whole.need_attempts(path, count)
                self._sealed.sessions.append(
                    SealedSession(int(number), str(session["producer"]), int(session["incarnation"]), count)
                )

    def _seal_deliveries(self) -> None:
        declared = self._each("observer", lambda e: {"name": e["writer"], "isolation": isolation_of(e)})
        isolations = {str(one["name"]): str(one["isolation"]) for one in declared}
        behind = {str(e["writer"]): behind_of(e) for e in self._events["reached"]}
        for path in self._run.journals("*.deliveries"):
            rows = self._rows_of(path, path.stem)
            reader = self._reader(path.stem)
            touched = make.touched(self._assignments, reader)
            pieces = self._own(rows)
            if path.stem in isolations:
                observed = Observed(reader, path.stem, isolations[path.stem], behind=behind.get(path.stem))
                self._sealed.observers.append(observed)
                pieces = map(observed.add, pieces)
            else:
                self._sealed.readers += 1
            self._files.write(
                "deliveries", path.stem, (make.deliveries(piece, reader, touched) for piece in pieces)
            )
        self._sealed.reader_names = list(self._readers)
        self._rows("readers", [
            {
                "reader": number, "name": name, "isolation": isolations.get(name, self._sealed.group_isolation),
                "observer": name in isolations,
            }
            for name, number in self._readers.items()
        ])  # fmt: skip
        for event in self._events["commit"]:
            path = self._run.ledger / f"{event['writer']}.deliveries"
            if not path.exists():
                raise LedgerError(f"{path}: missing, but {event['_at']} has a commit of its deliveries")

    def _seal_log(self) -> None:
        found: dict[str, list[ledger_journal.JournalRows]] = {isolation: [] for isolation in ISOLATIONS}
        for path in self._run.journals("*.log"):
            reader, _, isolation = path.stem.rpartition(".")
            if isolation not in ISOLATIONS:
                raise LedgerError(f"{path}: the name of a final reading is <reader>.<isolation>.log")
            found[isolation].append(self._rows_of(path, reader))
        for event in self._events["read"]:
            if event.get("complete") and not found.get(str(event.get("isolation"))):
                raise LedgerError(
                    f"{self._run.ledger}: no *.{event.get('isolation')}.log, but {event['_at']} read it"
                )
        self._files.write("log", "final", self._log_pieces(found))

    def _seal_effects(self) -> None:
        """Write the table `effects`: the origins of records that pipelines made, in the log that is owed."""
        for path in self._run.journals(f"*.{self._owed_isolation}.effects"):
            journal = self._rows_of(path, path.stem.rpartition(".")[0], ledger_journal.EFFECT)
            self._files.write(
                "effects",
                path.stem,
                (make.effects(need_sound(path, first, rows)) for first, rows in journal.pieces(PIECE)),
            )
        if self._owed_isolation == "read_uncommitted":
            return
        for path in self._run.journals("*.read_uncommitted.effects"):
            journal = self._rows_of(path, path.stem.rpartition(".")[0], ledger_journal.EFFECT)
            stable = {place: bounds[2] for place, bounds in self._readings.bounds.items()}
            sound = (need_sound(path, first, rows) for first, rows in journal.pieces(PIECE))
            pieces = (make.behind(rows, stable) for rows in sound)
            self._files.write(
                "effects", path.stem, (make.effects(late, late=True) for late in pieces if len(late))
            )

    def _log_pieces(self, found: Mapping[str, Sequence[ledger_journal.JournalRows]]) -> Iterator[Columns]:
        checked = {
            isolation: [Reading(journal, self._own(journal)) for journal in journals]
            for isolation, journals in found.items()
        }
        for readings in side_by_side(checked):
            rows, more = make.log(readings, self._owed_isolation, self._sealed.group_isolation, self._reach)
            self._sealed.in_log += int(np.count_nonzero(more["promised"]))
            self._sealed.in_log_uncommitted += int(np.count_nonzero(more["uncommitted"]))
            yield {**make.records(rows), **more}

    def _rows_of(
        self, path: Path, reader: str, dtype: np.dtype[np.void] = ledger_journal.DELIVERY
    ) -> ledger_journal.JournalRows:
        self._need_events_of(reader, path)
        rows = ledger_journal.JournalRows(path, dtype)
        if rows.torn_bytes:
            self._torn.append((reader, f"{path.name}: its last row is torn ({rows.torn_bytes} bytes)"))
        return rows

    def _own(self, journal: ledger_journal.JournalRows) -> Iterator[npt.NDArray[np.void]]:
        """Yield the rows of a journal; raise for records of a session without a journal of attempts."""
        for first, rows in journal.pieces(PIECE):
            need_sound(journal.path, first, rows)
            seen = set(np.unique(rows["session"][rows["flags"] == 0]).tolist())
            for session in sorted(seen & self._sessions.keys() - self._attempted):
                missing = self._attempts_of(session)
                raise LedgerError(f"{missing}: missing, but {journal.path.name} has records of this session")
            self._need_one_clock(journal.path, first, rows)
            yield rows

    def _need_one_clock(self, path: Path, first: int, rows: npt.NDArray[np.void]) -> None:
        """Raise if a record was received before it was sent, or if times go back: then the clock proves nothing."""
        wrong = np.flatnonzero(np.r_[rows["t"][:1] < 0, rows["t"][1:] < rows["t"][:-1]])
        if len(wrong):
            raise LedgerError(f"{path}: row {first + wrong[0]} goes back in time: {NO_CLOCK}")
        need_during(path, first, rows, "t", self._sealed.zero_ns)
        # Some rows are enough: a wrong clock is wrong for everything that its writer saw.
        some = rows[:: max(1, len(rows) // _COMPARED_TIMES)]
        for session in sorted(set(some["session"][some["flags"] == 0].tolist()) & self._attempted):
            if not self._attempts_of(session).stat().st_size:
                continue  # it never attempted anything
            sent = np.memmap(self._attempts_of(session), dtype=ledger_journal.ATTEMPT, mode="r")
            mine = some[(some["session"] == session) & (some["flags"] == 0) & (some["seq"] < len(sent))]
            early = mine[mine["t"] < sent["t_attempt"][mine["seq"]]]
            if len(early):
                raise LedgerError(
                    f"{path}: message {early['seq'][0]} of session {session} was read before it was sent: {NO_CLOCK}"
                )

    def _attempts_of(self, session: int) -> Path:
        return self._run.ledger / f"{self._sessions[session]['writer']}.{session}.attempts"

    def _need_events_of(self, writer: str, path: Path) -> None:
        if not (self._run.ledger / f"{writer}.events").exists():
            raise LedgerError(
                f"{self._run.ledger / writer}.events: missing, but {path.name} of the same writer is there"
            )

    def _judge_torn(self) -> None:
        """Sort torn last lines: of a killed worker they are normal, of any other writer they are gaps."""
        killed = [
            str(w.get("name")) for w in self._events["worker"] if w.get("state") in ("killed", "failed")
        ]
        for writer, what in self._torn:
            by_kill = any(writer == name or writer.startswith(f"{name}.") for name in killed)
            (self._sealed.torn if by_kill else self._sealed.gaps).append(
                f"{what}, as a killed worker leaves it"
                if by_kill
                else f"{what}, and its writer was not killed"
            )

    def _rows(self, table: str, rows: list[Columns]) -> None:
        columns = {name: [row.get(name) for row in rows] for name in SCHEMAS[table].names}
        self._files.write(table, "events", [columns])
