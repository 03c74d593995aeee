"""Read journals, also of a writer that was killed: a torn last row or line is recognised, other damage is an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.contracts import Outcome
from harness.errors import LedgerError
from harness.ledger.json_text import parse_json
from harness.ledger.rows import ATTEMPT, ATTEMPT_MARK, DELIVERY, OUTCOME_MARK

MOST_LINE = 1 << 24  # bytes of an event
ROWS_EACH = 1 << 18  # of attempts that are read at a time


def attempt_pieces(path: Path, rows_each: int = ROWS_EACH) -> Iterator[tuple[int, npt.NDArray[np.void]]]:
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
            if count:
                yield first, _with_outcomes(rows)
            first += count


def _with_outcomes(rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Mark the attempts without an outcome as unknown, in place."""
    silent = rows["outcome_mark"] != OUTCOME_MARK
    rows["outcome"][silent] = Outcome.UNKNOWN
    for name in ("offset", "told_partition", "t_outcome"):
        rows[name][silent] = -1
    return rows


def attempts_at(path: Path, seqs: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
    """Return the attempts with these sequence numbers, which were attempted, without reading the others."""
    return _with_outcomes(np.memmap(path, dtype=ATTEMPT, mode="r")[seqs])


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


def read_events(path: Path, most_line: int = MOST_LINE) -> Iterator[dict[str, Any]]:
    """Yield all events of a writer. A torn last line yields {"event": "torn"}; a broken one before it is an error."""
    with path.open("rb") as file:
        # Read no more than the longest allowed line: a file of a stranger may have no line ends.
        for number, line in enumerate(iter(lambda: file.readline(most_line), b""), start=1):
            whole = line.endswith(b"\n")
            if len(line) >= most_line:
                raise LedgerError(f"{path}:{number}: not a ledger line (longer than {most_line} bytes)")
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
