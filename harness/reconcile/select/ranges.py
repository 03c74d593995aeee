"""Ranges of offsets that need a closer look. Pure numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.reconcile.arrays import Bools, Ints

EVERYTHING = np.iinfo(np.int64).max
Ranges = Mapping[tuple[int, int], tuple[Ints, Ints]]  # run, place -> first and last offsets


@dataclass(frozen=True)
class Range:
    """Offsets of one partition that need a closer look, both ends included."""

    run: int
    place: int
    first: int
    last: int


def by_place(ranges: Sequence[Range]) -> Ranges:
    """Return, by run and place, the first offsets in order, and the highest last offset of the ranges so far."""
    found = {}
    for run, place in {(r.run, r.place) for r in ranges}:
        ends = np.array(
            sorted((r.first, r.last) for r in ranges if (r.run, r.place) == (run, place)), dtype=np.int64
        )
        found[run, place] = ends[:, 0], np.maximum.accumulate(ends[:, 1])
    return found


def in_ranges(run: int, place: Ints, offset: Ints, ranges: Ranges) -> Bools:
    inside = np.zeros(len(offset), dtype=np.bool_)
    for (of_run, of_place), (firsts, lasts) in ranges.items():
        if of_run == run:
            mine = np.flatnonzero(place == of_place)
            at = np.searchsorted(firsts, offset[mine], side="right") - 1
            inside[mine] = (at >= 0) & (lasts[at] >= offset[mine])
    return inside
