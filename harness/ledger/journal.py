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
event lines, so that a part that is missing later is noticed (harness.reconcile.seal.wholeness). A killed writer has none. The rows are in harness.ledger.rows; harness.ledger.reading reads journals.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from harness.errors import LedgerError
from harness.ledger.json_text import dump_json
from harness.ledger.rows import ATTEMPT, ATTEMPT_MARK, OUTCOME_MARK
from harness.runtime import disk_space

HARNESS = "harness"  # the writer of the harness itself
VERSION = 2  # 2: closing events with row counts, payloads whose checksum mixes each word
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
