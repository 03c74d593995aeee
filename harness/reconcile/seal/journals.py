"""The journals of a run as sealing reads them: every event and every row is checked, and errors name the file and the place.

Events are read first, because they say how to read the other journals.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from harness.errors import LedgerError
from harness.ledger import reading
from harness.ledger.events import read_events
from harness.ledger.manifest import ISOLATIONS
from harness.ledger.reading import JournalRows
from harness.ledger.row_checks import LONGEST_NS, NO_CLOCK, need_during, need_sound, need_whole_regions
from harness.ledger.rows import ATTEMPT, DELIVERY, EFFECT
from harness.ledger.rundir import RunDir
from harness.reconcile.seal.merge import PIECE, Rows
from harness.reconcile.seal.rows import Columns
from harness.reconcile.seal.sealed import Event

_COMPARED_TIMES = 1000  # rows of a piece whose time is compared with that of their attempt


class CheckedJournals:
    """The journals of one run; `zero_ns` is the time of its manifest."""

    def __init__(self, run: RunDir, zero_ns: int) -> None:
        self._run, self._zero_ns = run, zero_ns
        self.events: dict[str, list[Event]] = defaultdict(list)  # by kind
        self.lines: Counter[str] = Counter()  # events of each writer
        self._torn: list[tuple[str, str]] = []  # writer, what
        self._attempted: set[int] = set()  # sessions whose attempts are there
        self._read_events()

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
                if abs(event["t"] - self._zero_ns) > LONGEST_NS:
                    raise LedgerError(
                        f"{path}:{number}: time {event['t']} is more than a week from the manifest's clock: {NO_CLOCK}"
                    )
                self.lines[writer] += 1
                self.events[kind].append({**event, "_at": f"{path}:{number}"})

    def each(self, kind: str, columns: Callable[[Event], Columns | list[Columns]]) -> list[Columns]:
        """Return the rows made of every event of a kind; raise for an event without a field that its row needs."""
        rows: list[Columns] = []
        for event in self.events[kind]:
            try:
                made = columns(event)
            except (KeyError, TypeError, ValueError) as error:
                where = event["_at"]
                raise LedgerError(f"{where}: {kind} event with a missing or wrong field: {error}") from error
            rows += made if isinstance(made, list) else [made]
        return rows

    @cached_property
    def sessions(self) -> dict[int, Event]:
        """The `session` events by their numbers, once these were checked."""
        return {int(event["session"]): event for event in self.events["session"]}

    # --- rows ---

    def attempts(self) -> Iterator[tuple[Path, int, Iterator[tuple[int, Rows]]]]:
        """Yield the journal of each session's attempts: its path, the session, and pieces of rows with the number of the first."""
        for path in self._run.journals("*.attempts"):
            writer, _, number = path.stem.rpartition(".")
            if not re.fullmatch("[0-9]{1,10}", number):
                raise LedgerError(f"{path}: the name of an attempts file is <writer>.<session>.attempts")
            self._need_events_of(writer, path)
            need_whole_regions(path)
            pieces = reading.attempt_pieces(path)
            if int(number) in self.sessions:
                self._attempted.add(int(number))
                yield path, int(number), ((first, self._in_time(path, first, rows)) for first, rows in pieces)
            elif next(pieces, None) is not None:
                raise LedgerError(f"{path}: there is no event `session` for session {number}")

    def deliveries(self) -> Iterator[tuple[Path, Iterator[Rows]]]:
        """Yield each reader's journal: its path, and its rows in pieces; raise for a commit without deliveries."""
        for path in self._run.journals("*.deliveries"):
            yield path, self.records(self._rows_of(path, path.stem))
        for event in self.events["commit"]:
            path = self._run.ledger / f"{event['writer']}.deliveries"
            if not path.exists():
                raise LedgerError(f"{path}: missing, but {event['_at']} has a commit of its deliveries")

    def logs(self) -> dict[str, list[JournalRows]]:
        """Return the journals of the final readings, by isolation."""
        found: dict[str, list[JournalRows]] = {isolation: [] for isolation in ISOLATIONS}
        for path in self._run.journals("*.log"):
            reader, _, isolation = path.stem.rpartition(".")
            if isolation not in ISOLATIONS:
                raise LedgerError(f"{path}: the name of a final reading is <reader>.<isolation>.log")
            found[isolation].append(self._rows_of(path, reader))
        for event in self.events["read"]:
            if event.get("complete") and not found.get(str(event.get("isolation"))):
                raise LedgerError(
                    f"{self._run.ledger}: no *.{event.get('isolation')}.log, but {event['_at']} read it"
                )
        return found

    def torn(self) -> tuple[list[str], list[str]]:
        """Return the torn last lines and rows: those of killed workers, which are normal, and the others, which are gaps."""
        killed = [str(w.get("name")) for w in self.events["worker"] if w.get("state") in ("killed", "failed")]
        normal, gaps = [], []
        for writer, what in self._torn:
            if any(writer == name or writer.startswith(f"{name}.") for name in killed):
                normal.append(f"{what}, as a killed worker leaves it")
            else:
                gaps.append(f"{what}, and its writer was not killed")
        return normal, gaps

    def _rows_of(self, path: Path, writer: str, dtype: np.dtype[np.void] = DELIVERY) -> JournalRows:
        self._need_events_of(writer, path)
        rows = JournalRows(path, dtype)
        if rows.torn_bytes:
            self._torn.append((writer, f"{path.name}: its last row is torn ({rows.torn_bytes} bytes)"))
        return rows

    def effects(self, isolation: str) -> Iterator[tuple[Path, Iterator[Rows]]]:
        """Yield each journal of effects of this isolation: its path, and its rows in pieces."""
        for path in self._run.journals(f"*.{isolation}.effects"):
            journal = self._rows_of(path, path.stem.rpartition(".")[0], EFFECT)
            yield path, (need_sound(path, first, rows) for first, rows in journal.pieces(PIECE))

    def records(self, journal: JournalRows) -> Iterator[Rows]:
        """Yield the records of a reader; raise for records of a session without a journal of attempts."""
        for first, rows in journal.pieces(PIECE):
            need_sound(journal.path, first, rows)
            seen = set(np.unique(rows["session"][rows["flags"] == 0]).tolist())
            for session in sorted(seen & self.sessions.keys() - self._attempted):
                missing = self._attempts_of(session)
                raise LedgerError(f"{missing}: missing, but {journal.path.name} has records of this session")
            self._need_one_clock(journal.path, first, rows)
            yield rows

    def _in_time(self, path: Path, first: int, rows: Rows) -> Rows:
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
            need_during(path, first, rows, name, self._zero_ns)
        return rows

    def _need_one_clock(self, path: Path, first: int, rows: Rows) -> None:
        """Raise if a record was received before it was sent, or if times go back: then the clock proves nothing."""
        wrong = np.flatnonzero(np.r_[rows["t"][:1] < 0, rows["t"][1:] < rows["t"][:-1]])
        if len(wrong):
            raise LedgerError(f"{path}: row {first + wrong[0]} goes back in time: {NO_CLOCK}")
        need_during(path, first, rows, "t", self._zero_ns)
        # Some rows are enough: a wrong clock is wrong for everything that its writer saw.
        some = rows[:: max(1, len(rows) // _COMPARED_TIMES)]
        for session in sorted(set(some["session"][some["flags"] == 0].tolist()) & self._attempted):
            if not self._attempts_of(session).stat().st_size:
                continue  # it never attempted anything
            sent = np.memmap(self._attempts_of(session), dtype=ATTEMPT, mode="r")
            mine = some[(some["session"] == session) & (some["flags"] == 0) & (some["seq"] < len(sent))]
            early = mine[mine["t"] < sent["t_attempt"][mine["seq"]]]
            if len(early):
                raise LedgerError(
                    f"{path}: message {early['seq'][0]} of session {session} was read before it was sent: {NO_CLOCK}"
                )

    def _attempts_of(self, session: int) -> Path:
        return self._run.ledger / f"{self.sessions[session]['writer']}.{session}.attempts"

    def _need_events_of(self, writer: str, path: Path) -> None:
        if not (self._run.ledger / f"{writer}.events").exists():
            raise LedgerError(
                f"{self._run.ledger / writer}.events: missing, but {path.name} of the same writer is there"
            )


def _once(events: Iterable[tuple[int, Event]]) -> Iterator[tuple[int, Event]]:
    """Yield the events without repeated lines: one writer does nothing twice in one nanosecond."""
    at: dict[str, list[Event]] = defaultdict(list)
    for number, event in events:
        same_time = at[str(event.get("t"))]
        if event not in same_time:
            same_time.append(event)
            yield number, event
