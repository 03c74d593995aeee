"""The ledger: everything a run attempted and saw, written so that it survives SIGKILL of its writer.

Four kinds of journal, each with one writer, all on one clock (CLOCK_MONOTONIC in ns, the same for all
processes of a machine; the manifest says which wall time its zero was):

* `<worker>.attempts`: one row (ATTEMPT) for each attempt, at the place given by its sequence number, in
  a memory-mapped file. The first half is written before the send, the second with the outcome; the mark of
  each half is written last, so a half without its mark was not finished. Pages of a mapped file belong to
  the kernel: they outlive the process. No outcome mark means unknown.
* `<worker>.deliveries` (and the final reader's `<reader>.log`): rows appended a batch at a time with one
  write. A torn last row is cut off when read.
* `<reader>.<isolation>.effects`: the origins of those records in a final reading that a pipeline made of others.
* `<writer>.events`: JSON lines for all that is rare: transactions, commits, assignments, fault windows and
  their bites, log bounds. A torn last line is recognised; a broken line elsewhere is an error.

A writer that ends in an orderly way writes a last event, `closed`, with the number of rows of each of its journals and of its
event lines, so that a part that is missing later is noticed (harness.reconcile.seal.wholeness). A killed writer has none.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from harness.contracts import Outcome
from harness.errors import LedgerError
from harness.ledger.value_checks import dump_json, parse_json
from harness.runtime import disk_space

HARNESS = "harness"  # the writer of the harness itself
VERSION = 2  # 2: closing events with row counts, payloads whose checksum mixes each word
MOST_LINE = 1 << 24  # bytes of an event
ATTEMPT_MARK = 0xA77E
OUTCOME_MARK = 0x0C0E

ATTEMPT = np.dtype(
    [
        ("t_attempt", "<i8"),
        ("key", "<i4"),
        ("txn", "<u4"),
        ("partition", "<i2"),  # intended; -1: the client chose
        ("flags", "u1"),  # message.ABORT_INTENDED
        ("topic", "u1"),
        ("attempt_mark", "<u4"),
        ("t_outcome", "<i8"),
        ("offset", "<i8"),  # -1: the client reported none
        ("told_partition", "<i2"),
        ("error", "<i2"),  # the client library's error code, 0: none
        ("outcome", "u1"),
        ("spare", "u1"),
        ("outcome_mark", "<u2"),
    ]
)
DELIVERY = np.dtype(
    [
        ("t", "<i8"),
        ("offset", "<i8"),
        ("seq", "<i8"),
        ("session", "<u4"),
        ("txn", "<u4"),
        ("key", "<i4"),
        ("partition", "<i2"),
        ("intended_partition", "<i2"),
        ("topic", "u1"),
        ("flags", "u1"),  # message.BAD_*, FOREIGN_RUN: damage of the record
        ("intent", "u1"),  # message.ABORT_INTENDED as the payload says
        ("intended_topic", "u1"),
        ("leader_epoch", "<i4"),  # -1: not reported
    ]
)
# A record that a pipeline made of another one: its message, its position, and its origin.
EFFECT = np.dtype(
    [
        ("offset", "<i8"),
        ("seq", "<i8"),
        ("origin_offset", "<i8"),
        ("origin_seq", "<i8"),
        ("session", "<u4"),
        ("origin_session", "<u4"),
        ("partition", "<i2"),
        ("origin_partition", "<i2"),
        ("topic", "u1"),
        ("origin_topic", "u1"),
        ("number", "u1"),  # of the effects of one message, from 0 on
        ("spare", "u1"),
    ]
)
_ROW_BYTES = ATTEMPT.itemsize  # of an attempt
_OUTCOME_AT = ATTEMPT.fields["t_outcome"][1]  # type: ignore[index]  # the second half of a row
# Bound once: it is called for every record, where each attribute look-up costs.
_pack_outcome = struct.Struct("<qqhhBBH").pack_into
_REGION_BITS = 16
REGION_ROWS = 1 << _REGION_BITS
_ROW_MASK = REGION_ROWS - 1
REGION_BYTES = REGION_ROWS * _ROW_BYTES  # a multiple of the page size, as mmap requires

now_ns = time.monotonic_ns
_NO_ROOM = "free some disk space or choose another folder with --runs"


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CREAT, 0o644)
    except OSError as error:
        raise LedgerError(
            f"{path}: cannot open this file of the ledger ({error.strerror}); {_NO_ROOM}"
        ) from error


def _append(file: int, path: Path, data: bytes) -> None:
    """Append all of the data, or nothing and raise: a part of a row or line would look like damage later."""
    before = os.lseek(file, 0, os.SEEK_END)
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(file, left) :]  # a nearly full disk may accept only a part
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(file, before)
        raise LedgerError(f"{path}: cannot append to the ledger ({error.strerror}); {_NO_ROOM}") from error


class AttemptJournal:
    """Attempts and outcomes of one producer session."""

    def __init__(self, path: Path) -> None:
        self._file = _open(path, os.O_RDWR | os.O_EXCL)
        self._path = path
        self._regions: list[mmap.mmap] = []
        self._marks: list[npt.NDArray[np.uint32]] = []  # `attempt_mark` of the rows of each region
        self.attempted = 0
        self.outcomes = [0, 0, 0]  # how many of each Outcome

    def attempt(
        self, seq: int, key: int, partition: int, txn: int = 0, flags: int = 0, topic: int = 0
    ) -> None:
        """Record that message `seq` is about to be sent. Call before the send."""
        self.attempts(seq, [key], partition, txn, flags, topic)

    def attempts(
        self,
        first_seq: int,
        keys: npt.ArrayLike,
        partitions: npt.ArrayLike,
        txns: npt.ArrayLike = 0,
        flags: npt.ArrayLike = 0,
        topics: npt.ArrayLike = 0,
    ) -> None:
        """Record that messages first_seq, first_seq + 1, … are about to be sent, as many as there are keys. Call before the sends."""
        rows = np.zeros(len(np.atleast_1d(keys)), dtype=ATTEMPT)
        rows["t_attempt"] = now_ns()
        rows["key"], rows["txn"], rows["partition"], rows["flags"], rows["topic"] = (
            keys, txns, partitions, flags, topics
        )  # fmt: skip
        self.attempted = first_seq + len(rows)
        while len(rows):
            number, first = first_seq >> _REGION_BITS, first_seq & _ROW_MASK
            if number >= len(self._regions):
                self._grow()
            part, rows = rows[: REGION_ROWS - first], rows[REGION_ROWS - first :]
            self._regions[number][first * _ROW_BYTES : (first + len(part)) * _ROW_BYTES] = part.tobytes()
            # Last, and in order: a writer that is killed in between leaves no row that has a mark but no contents.
            self._marks[number][first : first + len(part)] = ATTEMPT_MARK
            first_seq += len(part)

    def outcome(self, seq: int, outcome: int, partition: int, offset: int, error: int) -> None:
        """Record the outcome of message `seq`."""
        region, at = self._regions[seq >> _REGION_BITS], (seq & _ROW_MASK) * _ROW_BYTES + _OUTCOME_AT
        _pack_outcome(region, at, now_ns(), offset, partition, error, outcome, 0, OUTCOME_MARK)
        self.outcomes[outcome] += 1

    def _grow(self) -> None:
        start = len(self._regions) * REGION_BYTES
        try:
            # Allocate blocks now: a full disk fails here with an error; a hole in the file would raise SIGBUS later.
            os.posix_fallocate(self._file, start, REGION_BYTES)
        except OSError as error:
            raise LedgerError(
                f"{self._path}: no room for {REGION_BYTES} more bytes of ledger ({error.strerror}); {_NO_ROOM}"
            ) from error
        self._regions.append(mmap.mmap(self._file, REGION_BYTES, offset=start))
        self._marks.append(np.frombuffer(self._regions[-1], dtype=ATTEMPT)["attempt_mark"])

    def close(self) -> None:
        self._marks.clear()  # a region cannot be closed while an array shows it
        for region in self._regions:
            region.close()
        os.close(self._file)


class RowJournal:
    """Rows of one reader, appended batch by batch."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _open(path, os.O_WRONLY | os.O_APPEND)
        self.rows = 0

    def append(self, rows: npt.NDArray[np.void]) -> None:
        _append(self._file, self._path, rows.tobytes())
        self.rows += len(rows)

    def close(self) -> None:
        os.close(self._file)


class EventLog:
    """JSON lines of one writer; each line reaches the kernel before `write` returns. Threads may share it.

    With `reserve_bytes` the disk keeps room for so many, so that they can be written when it is full.
    """

    def __init__(self, path: Path, writer: str, reserve_bytes: int = 0) -> None:
        self._file = _open(path, os.O_WRONLY | os.O_APPEND)
        self._reserved = bool(reserve_bytes) and disk_space.reserve(self._file, reserve_bytes)
        self._path = path
        self._writer = writer
        self._lock = threading.Lock()
        self.lines = 0

    def write(self, kind: str, **fields: Any) -> None:
        line = dump_json({"t": now_ns(), "event": kind, "writer": self._writer, **fields}) + "\n"
        with self._lock:
            _append(self._file, self._path, line.encode())
            self.lines += 1

    def close(self) -> None:
        if self._reserved:
            disk_space.give_back(self._file)
        os.close(self._file)


class Ledger:
    """The journals of one writer (a worker's incarnation, the injector, the harness itself).

    Use it with `with`: without an exception it is closed in an orderly way and writes its last event, `closed`.
    """

    def __init__(self, folder: Path, writer: str, reserve_bytes: int = 0) -> None:
        self.writer = writer
        self.folder = folder
        self.events = EventLog(folder / f"{writer}.events", writer, reserve_bytes)
        self._opened: dict[str, AttemptJournal | RowJournal] = {}  # by file name

    def attempts(self, session: int) -> AttemptJournal:
        """Open the journal of a producer session, which its `session` event announces."""
        name = f"{self.writer}.{session}.attempts"
        journal = self._opened[name] = AttemptJournal(self.folder / name)
        return journal

    def deliveries(self) -> RowJournal:
        return self._rows("deliveries")

    def log(self, isolation: str) -> RowJournal:
        return self._rows(f"{isolation}.log")

    def effects(self, isolation: str) -> RowJournal:
        return self._rows(f"{isolation}.effects")

    def _rows(self, kind: str) -> RowJournal:
        name = f"{self.writer}.{kind}"
        journal = self._opened[name] = RowJournal(self.folder / name)
        # A killed writer closes nothing. This event at least records that the file must exist.
        self.events.write("opened", file=name)
        return journal

    def close(self) -> None:
        """Write the last event with all counts: from here on every missing row or line is noticed."""
        rows = {
            name: journal.attempted if isinstance(journal, AttemptJournal) else journal.rows
            for name, journal in self._opened.items()
        }
        try:
            self.events.write("closed", rows=rows, lines=self.events.lines + 1)
        finally:
            self._release()

    def _release(self) -> None:
        for journal in self._opened.values():
            journal.close()
        self.events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._release()


# --- reading --------------------------------------------------------------------------------------


def attempt_pieces(
    path: Path, rows_each: int = 4 * REGION_ROWS
) -> Iterator[tuple[int, npt.NDArray[np.void]]]:
    """Yield attempts of a session in order, some at a time, with the sequence number of the first one."""
    first, end = 0, None  # `end`: the first row that was never attempted
    with path.open("rb") as file:
        while len(rows := np.fromfile(file, dtype=ATTEMPT, count=rows_each)):
            # Space is allocated ahead of use, so rows without a mark at the end were never attempted.
            marked = rows["attempt_mark"] == ATTEMPT_MARK
            count = len(rows) if marked.all() else int(np.argmin(marked))
            if (end is not None and marked.any()) or marked[count:].any():
                hole = first + count if end is None else end
                raise LedgerError(
                    f"{path}: attempt {hole} is missing although later ones are there: not a whole ledger"
                )
            if count < len(rows) and end is None:
                end = first + count
            rows = rows[:count]
            silent = rows["outcome_mark"] != OUTCOME_MARK
            rows["outcome"][silent] = Outcome.UNKNOWN
            rows["offset"][silent] = -1
            rows["told_partition"][silent] = -1
            rows["t_outcome"][silent] = -1
            if count:
                yield first, rows
            first += count


def read_attempts(path: Path) -> npt.NDArray[np.void]:
    """Return all attempts of a session in order; the row number is the sequence number."""
    pieces = [rows for _, rows in attempt_pieces(path)]
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=ATTEMPT)


class JournalRows:
    """The whole rows of a journal of deliveries or effects, read when they are needed."""

    def __init__(self, path: Path, dtype: np.dtype[np.void] = DELIVERY) -> None:
        self.path, self._dtype = path, dtype
        self._count, self.torn_bytes = divmod(path.stat().st_size, dtype.itemsize)

    def __len__(self) -> int:
        return self._count

    def read(self, first: int, count: int) -> npt.NDArray[np.void]:
        return np.fromfile(self.path, dtype=self._dtype, count=count, offset=first * self._dtype.itemsize)

    def gather(
        self, stretches: Sequence[tuple[int, int]], after: npt.NDArray[np.void]
    ) -> npt.NDArray[np.void]:
        """Return the rows `after`, then those of each stretch, which is its first row and its number of rows."""
        size = self._dtype.itemsize
        made = np.empty(len(after) + sum(count for _, count in stretches), dtype=self._dtype)
        made[: len(after)] = after
        room = made.view(np.uint8).data[len(after) * size :]
        with self.path.open("rb", buffering=0) as file:
            for first, count in stretches:
                file.seek(first * size)
                if file.readinto(room[: count * size]) != count * size:
                    raise LedgerError(f"{self.path}: it became shorter while it was read")
                room = room[count * size :]
        return made

    def pieces(self, rows_each: int) -> Iterator[tuple[int, npt.NDArray[np.void]]]:
        """Yield all rows in order, some at a time, with the number of the first one."""
        for first in range(0, self._count, rows_each):
            yield first, self.read(first, min(rows_each, self._count - first))


def read_deliveries(path: Path) -> tuple[npt.NDArray[np.void], int]:
    """Return all whole rows, and the number of bytes of a torn last row that were left out."""
    rows = JournalRows(path)
    return rows.read(0, len(rows)), rows.torn_bytes


def file_sizes(folder: Path, writer: str) -> dict[str, int]:
    """Return the bytes of each journal of a writer that has ended. Files of attempts are left out: they are allocated ahead of use."""
    return {
        path.name: path.stat().st_size
        for path in sorted(folder.glob(f"{writer}.*"))
        if path.suffix != ".attempts"
    }


def torn(path: Path, line: int) -> dict[str, Any]:
    """Return the event that replaces a last line that its writer could not finish."""
    return {"event": "torn", "writer": path.stem, "line": line}


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield all events of a writer. A torn last line yields {"event": "torn"}; a broken one before it is an error."""
    with path.open("rb") as file:
        # Read no more than the longest allowed line: a file of a stranger may have no line ends.
        for number, line in enumerate(iter(lambda: file.readline(MOST_LINE), b""), start=1):
            whole = line.endswith(b"\n")
            if len(line) >= MOST_LINE:
                raise LedgerError(f"{path}:{number}: not a ledger line (longer than {MOST_LINE} bytes)")
            try:
                event = parse_json(line)
                if not isinstance(event, dict) or "event" not in event:
                    raise ValueError("not an event")
            except ValueError as error:
                if not whole:
                    yield torn(path, number)
                    return
                raise LedgerError(f"{path}:{number}: not a ledger line ({error})") from error
            yield event
