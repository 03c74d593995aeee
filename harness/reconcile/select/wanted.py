"""Messages, positions and ranges of offsets that need a closer look, as they are sent to the tasks. Pure numpy.

Messages and positions are sets of hashes of 64 bits. If two collide, some rows too many are picked, all rows of their
message or position; no judgement changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from harness.reconcile.arrays import Bools, Ints, mixed
from harness.reconcile.screen.spaces import Summary
from harness.reconcile.screen.summaries import BITS

EVERYTHING = np.iinfo(np.int64).max  # an offset or seq beyond all others

_NONE = np.zeros(0, dtype=np.int64)
_LAST = (1 << 16) - 1


class Kind(IntEnum):
    """The kind of a wanted item, which says what its x and y are."""

    MESSAGES = 0  # session, block of seqs
    MESSAGE = 1  # session, seq
    POSITIONS = 2  # place, block of offsets
    POSITION = 3  # place, offset


def _key(run: int | Ints, x: Ints, y: Ints) -> Ints:
    return mixed(np.broadcast_to(np.asarray(run, dtype=np.int64), x.shape), x, y)


@dataclass
class Wanted:
    """Keys of messages and positions, by kind.

    The last bits of y are looked up first, without a hash: that rules out nearly all rows of a large ledger.
    """

    keys: dict[Kind, Ints] = field(default_factory=lambda: dict.fromkeys(Kind, _NONE))
    _last_bits: dict[Kind, Bools] = field(default_factory=dict)

    def add(self, kind: Kind, run: Ints, x: Ints, y: Ints) -> None:
        if len(y):
            self.keys[kind] = np.union1d(self.keys[kind], _key(run, x, y))
            known = self._last_bits.get(kind, np.zeros(_LAST + 1, dtype=np.bool_)).copy()
            known[y & _LAST] = True
            self._last_bits[kind] = known

    def add_blocks(self, kind: Kind, s: Summary) -> None:
        """Add the blocks of named summary rows."""
        x, y = ("session", "seq_block") if kind is Kind.MESSAGES else ("place", "offset_block")
        self.add(kind, s["run"], s[x], s[y])

    @property
    def blocks(self) -> int:
        """The number of blocks, with 64 single items counted as one block."""
        single = len(self.keys[Kind.MESSAGE]) + len(self.keys[Kind.POSITION])
        blocks = sum(len(self.keys[kind]) for kind in (Kind.MESSAGES, Kind.POSITIONS))
        return blocks + (single >> BITS)

    def holds(self, run: int, kind: Kind, x: Ints, y: Ints) -> Bools:
        found = np.zeros(len(x), dtype=np.bool_)
        if len(self.keys[kind]):
            near = np.flatnonzero(self._last_bits[kind][y & _LAST])
            found[near] = isin(_key(run, x[near], y[near]), self.keys[kind])
        return found

    def message(self, run: int, session: Ints, seq: Ints) -> Bools:
        """Mark the rows whose message is wanted, by itself or with its block."""
        block = self.holds(run, Kind.MESSAGES, session, seq >> BITS)
        return block | self.holds(run, Kind.MESSAGE, session, seq)

    def position(self, run: int, place: Ints, offset: Ints) -> Bools:
        """Mark the rows whose position is wanted; an offset below 0 is no position."""
        block = self.holds(run, Kind.POSITIONS, place, offset >> BITS)
        return (offset >= 0) & (block | self.holds(run, Kind.POSITION, place, offset))


def isin(values: Ints, known: Ints) -> Bools:
    """Do what np.isin does, for a sorted and usually short array."""
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: Bools = known[at] == values
    return found


class Range(NamedTuple):
    """Offsets of one partition that need a closer look, both ends included."""

    run: int
    place: int
    first: int
    last: int


@dataclass(frozen=True)
class Ranges:
    """Ranges by run and place: their first offsets in order, and for each the highest last offset up to it.

    A range that begins later may end earlier: 0-9, 2-3 and 20-25 are the first offsets 0 2 20 and the last 9 9 25.
    """

    by_run: Mapping[int, Mapping[int, tuple[Ints, Ints]]]

    @classmethod
    def of(cls, ranges: Iterable[Range]) -> Ranges:
        spans: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for run, place, first, last in ranges:
            spans[run, place].append((first, last))
        found: dict[int, dict[int, tuple[Ints, Ints]]] = defaultdict(dict)
        for (run, place), ends in spans.items():
            ordered = np.array(sorted(ends), dtype=np.int64)
            found[run][place] = ordered[:, 0], np.maximum.accumulate(ordered[:, 1])
        return cls(dict(found))

    def __bool__(self) -> bool:
        return bool(self.by_run)

    def overlap(self, run: int, place: Ints, first: Ints, last: Ints) -> Bools:
        """Mark the rows that have an offset from `first` to `last` in a range."""
        found = np.zeros(len(place), dtype=np.bool_)
        for of_place, (firsts, lasts) in self.by_run.get(run, {}).items():
            mine = np.flatnonzero(place == of_place)
            # The last range that begins up to `last`: it, or one before it, reaches `first` or none does.
            at = np.searchsorted(firsts, last[mine], side="right") - 1
            found[mine] = (at >= 0) & (lasts[at] >= first[mine])
        return found
