"""The final readings side by side, partition by partition, a stretch of offsets at a time.

A reading may be larger than memory, and its journal has the partitions mixed as they came. So each journal is gone
through once to learn which rows belong to which partition, and then read again in order of partition and offset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from harness.ledger import DELIVERY, JournalRows

Rows = npt.NDArray[np.void]
Place = tuple[int, int]  # topic, partition

PIECE = 1 << 18  # rows that are worked on at a time


@dataclass
class Reading:
    """One journal of a final reader: where the rows of each partition stand in it."""

    journal: JournalRows
    stretches: dict[Place, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    backwards: set[Place] = field(default_factory=set)  # partitions whose rows are not in order of offsets

    def __post_init__(self) -> None:
        highest: dict[Place, int] = {}
        for first, rows in self.journal.pieces(PIECE):
            changes = (rows["partition"][1:] != rows["partition"][:-1]) | (
                rows["topic"][1:] != rows["topic"][:-1]
            )
            starts = np.r_[0, np.flatnonzero(changes) + 1]
            for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
                place = int(rows["topic"][start]), int(rows["partition"][start])
                offsets = rows["offset"][start:end]
                if offsets[0] < highest.get(place, -1) or np.any(offsets[1:] < offsets[:-1]):
                    self.backwards.add(place)
                highest[place] = max(highest.get(place, -1), int(offsets.max()))
                self.stretches[place].append((first + start, end - start))

    def pieces(self, place: Place) -> Iterator[Rows]:
        """The rows of one partition in order of offsets."""
        if place in self.backwards:
            # Unlike any reading of a sound log: taken as a whole, since its order has to be made first.
            rows = np.concatenate([self.journal.read(*stretch) for stretch in self.stretches[place]])
            yield rows[np.argsort(rows["offset"], kind="stable")]
            return
        gathered: list[Rows] = []
        for stretch in self.stretches.get(place, ()):
            gathered.append(self.journal.read(*stretch))
            if sum(map(len, gathered)) >= PIECE:
                yield np.concatenate(gathered)
                gathered = []
        if gathered:
            yield np.concatenate(gathered)


class _Source:
    """A reading of one partition, from which rows are taken from the front."""

    def __init__(self, pieces: Iterator[Rows]) -> None:
        self._pieces = pieces
        self._ended = False
        self.rows: Rows = np.zeros(0, dtype=DELIVERY)
        self._fill()

    def _fill(self) -> None:
        # More than one offset must be at hand, or rows of one position might be torn apart.
        while not self._ended and (not len(self.rows) or self.rows["offset"][0] == self.rows["offset"][-1]):
            piece = next(self._pieces, None)
            self._ended = piece is None
            if piece is not None:
                self.rows = np.concatenate([self.rows, piece])

    def whole_below(self) -> int | None:
        """The offset below which all rows are at hand; None: there are no more than these."""
        return None if self._ended else int(self.rows["offset"][-1])

    def take(self, below: int | None) -> Rows:
        count = (
            len(self.rows) if below is None else int(np.searchsorted(self.rows["offset"], below, side="left"))
        )
        taken, self.rows = self.rows[:count], self.rows[count:]
        self._fill()
        return taken


def side_by_side(readings: Mapping[str, Sequence[JournalRows]]) -> Iterator[dict[str, Rows]]:
    """By isolation, the rows of one stretch of offsets of one partition; partitions and stretches in order."""
    found = {
        isolation: [Reading(journal) for journal in journals] for isolation, journals in readings.items()
    }
    places = sorted({place for sides in found.values() for reading in sides for place in reading.stretches})
    none = np.zeros(0, dtype=DELIVERY)
    for place in places:
        sources = {
            isolation: [_Source(reading.pieces(place)) for reading in sides]
            for isolation, sides in found.items()
        }
        every = [source for sides in sources.values() for source in sides]
        while any(len(source.rows) for source in every):
            limits = [limit for source in every if (limit := source.whole_below()) is not None]
            below = min(limits, default=None)
            yield {
                isolation: np.concatenate([none, *(source.take(below) for source in sides)])
                for isolation, sides in sources.items()
            }
