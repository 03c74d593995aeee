"""Arrays of whole numbers as all stages use them: their types, hashes of rows, and places as one number. Pure numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Columns = Mapping[str, npt.NDArray[Any]]
_MIXED_AT_ONCE = 1 << 13  # rows: few enough to stay in the cache of a core between two steps


def place_of(topic: Ints, partition: Ints) -> Ints:
    return topic << 32 | partition


def mixed(*columns: Ints) -> Ints:
    """Return a hash of each row: 64 bits, so that hashes that cancel out mean equal rows. Wraps on purpose."""
    words = [column.astype(np.int64, copy=False).view(np.uint64) for column in columns]
    made = np.zeros(len(columns[0]), dtype=np.uint64)
    shifted = np.empty(min(len(made), _MIXED_AT_ONCE), dtype=np.uint64)
    for first in range(0, len(made), _MIXED_AT_ONCE):
        state = made[first : first + _MIXED_AT_ONCE]
        some = shifted[: len(state)]
        for word in words:
            state ^= word[first : first + _MIXED_AT_ONCE]
            state *= np.uint64(0x9E37_79B9_7F4A_7C15)
            state ^= np.right_shift(state, np.uint64(29), out=some)
            state *= np.uint64(0xBF58_476D_1CE4_E5B9)
            state ^= np.right_shift(state, np.uint64(32), out=some)
    return made.view(np.int64)


def looked_up(wanted: Ints, known: Ints, values: Ints, otherwise: int) -> Ints:
    """Return the value beside each wanted number in `known`, which is sorted.

    Neighbours are equal most often, so each stretch of equal numbers is looked up once.
    """
    if not len(known) or not len(wanted):
        return np.full(len(wanted), otherwise, dtype=np.int64)
    starts = np.flatnonzero(np.r_[True, wanted[1:] != wanted[:-1]])
    first = wanted[starts]
    at = np.minimum(np.searchsorted(known, first), len(known) - 1)
    found = np.where(known[at] == first, values[at], otherwise)
    return np.repeat(found, np.diff(np.r_[starts, len(wanted)]))


def unique_pairs(x: Ints, y: Ints) -> tuple[Ints, Ints, Ints]:
    """Return each pair once, in order, and how often it occurs. np.unique along an axis takes ten times as long."""
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    starts = np.flatnonzero(np.r_[True, (x[1:] != x[:-1]) | (y[1:] != y[:-1])][: len(x)])
    return x[starts], y[starts], np.diff(np.r_[starts, len(x)])
