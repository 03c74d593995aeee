"""Arrays of whole numbers as all stages use them: their types, hashes of rows, and places as one number. Pure numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Columns = Mapping[str, npt.NDArray[Any]]


def place_of(topic: Ints, partition: Ints) -> Ints:
    return topic << 32 | partition


def mixed(*columns: Ints) -> Ints:
    """A hash of each row: 64 bits, so that hashes that cancel out mean equal rows. Wraps on purpose."""
    state = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        state = (state ^ column.astype(np.uint64)) * np.uint64(0x9E37_79B9_7F4A_7C15)
        state ^= state >> np.uint64(29)
        state *= np.uint64(0xBF58_476D_1CE4_E5B9)
        state ^= state >> np.uint64(32)
    return state.astype(np.int64)


def unique_pairs(x: Ints, y: Ints) -> tuple[Ints, Ints, Ints]:
    """Each pair once, in order, and how often it is there. np.unique along an axis takes ten times as long."""
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    starts = np.flatnonzero(np.r_[True, (x[1:] != x[:-1]) | (y[1:] != y[:-1])][: len(x)])
    return x[starts], y[starts], np.diff(np.r_[starts, len(x)])
