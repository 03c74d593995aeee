"""The final readings side by side, partition by partition, a stretch of offsets at a time.

A reading may be larger than memory, and its journal has the partitions mixed as they came. So each journal is read once to
learn which rows belong to which partition, and then again in order of partition and offset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from harness.ledger.reading import JournalRows
from harness.ledger.rows import DELIVERY

Rows = npt.NDArray[np.void]
Place = tuple[int, int]  # topic, partition
Stretch = tuple[int, int]  # first row, number of rows

PIECE = 1 << 18  # rows that are worked on at a time

# numpy copies rows with named fields field by field, ten times as slowly as plain bytes.


def joined(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    dtype = parts[0].dtype
    return np.concatenate([part.view(f"V{dtype.itemsize}") for part in parts]).view(dtype)


def taken(rows: Rows, order: npt.NDArray[np.int64]) -> Rows:
    """Return the rows at these places, in this order."""
    return rows.view(f"V{rows.dtype.itemsize}").take(order).view(rows.dtype)


class Reading:
    """One journal of a final reader: where the rows of each partition are in it."""

    def __init__(self, journal: JournalRows, pieces: Iterable[Rows], batch_rows: int = PIECE) -> None:
        """Read `pieces`, which are all rows of the journal in order."""
        self.journal, self._batch_rows = journal, batch_rows
        self.stretches: dict[Place, list[Stretch]] = defaultdict(list)
        self.backwards: set[Place] = set()  # partitions whose rows are not in order of offsets
        highest: dict[Place, int] = {}
        first = 0
        for rows in pieces:
            for place, start, count, falls, low, high in _stretches_in(rows):
                before = highest.get(place, -1)
                if falls or low < before:
                    self.backwards.add(place)
                highest[place] = max(before, high)
                self.stretches[place].append((first + start, count))
            first += len(rows)

    def batches(self, place: Place) -> Iterator[list[Stretch]]:
        """Yield the stretches of a partition, as many at a time as have `batch_rows` rows."""
        batch: list[Stretch] = []
        rows = 0
        for stretch in self.stretches.get(place, ()):
            batch.append(stretch)
            rows += stretch[1]
            # Rows out of order, which no sound log has, are taken as a whole, because they have to be sorted first.
            if rows >= self._batch_rows and place not in self.backwards:
                yield batch
                batch, rows = [], 0
        if batch:
            yield batch


def _stretches_in(rows: Rows) -> Iterator[tuple[Place, int, int, bool, int, int]]:
    """Yield each stretch of rows of one partition: partition, first row, number of rows, whether offsets fall in it, its
    first and its highest offset."""
    offset, begins = rows["offset"], np.ones(len(rows), dtype=np.bool_)
    begins[1:] = (rows["partition"][1:] != rows["partition"][:-1]) | (rows["topic"][1:] != rows["topic"][:-1])
    falls = ~begins
    falls[1:] &= offset[1:] < offset[:-1]
    starts = np.flatnonzero(begins)
    columns = (
        rows["topic"][starts], rows["partition"][starts], starts, np.diff(starts, append=len(rows)),
        np.logical_or.reduceat(falls, starts), offset[starts], np.maximum.reduceat(offset, starts),
    )  # fmt: skip
    for topic, partition, *others in zip(*(column.tolist() for column in columns), strict=True):
        yield (topic, partition), *others


class _Source:
    """A reading of one partition; rows are taken from its front."""

    def __init__(self, reading: Reading, place: Place) -> None:
        self._journal, self._batches = reading.journal, reading.batches(place)
        self._sorted = place not in reading.backwards
        self._ended = False
        self.rows: Rows = np.zeros(0, dtype=DELIVERY)
        self._fill()

    def _fill(self) -> None:
        # More than one offset must be loaded, or rows of one position might be separated.
        while not self._ended and (not len(self.rows) or self.rows["offset"][0] == self.rows["offset"][-1]):
            batch = next(self._batches, None)
            self._ended = batch is None
            if batch is not None:
                self.rows = self._journal.gather(batch, after=self.rows)
                if not self._sorted:
                    self.rows = taken(self.rows, np.argsort(self.rows["offset"], kind="stable"))

    def whole_below(self) -> int | None:
        """The offset below which all rows are loaded; None: there are no further rows."""
        return None if self._ended else int(self.rows["offset"][-1])

    def take(self, below: int | None) -> Rows:
        count = (
            len(self.rows) if below is None else int(np.searchsorted(self.rows["offset"], below, side="left"))
        )
        taken, self.rows = self.rows[:count], self.rows[count:]
        self._fill()
        return taken


def side_by_side(readings: Mapping[str, Sequence[Reading]]) -> Iterator[dict[str, Rows]]:
    """Yield, by isolation, the rows of one stretch of offsets of one partition; partitions and stretches in order."""
    places = sorted(
        {place for sides in readings.values() for reading in sides for place in reading.stretches}
    )
    none = np.zeros(0, dtype=DELIVERY)
    for place in places:
        sources = {
            isolation: [_Source(reading, place) for reading in sides] for isolation, sides in readings.items()
        }
        every = [source for sides in sources.values() for source in sides]
        while any(len(source.rows) for source in every):
            limits = [limit for source in every if (limit := source.whole_below()) is not None]
            below = min(limits, default=None)
            yield {
                isolation: joined([source.take(below) for source in sides] or [none])
                for isolation, sides in sources.items()
            }
