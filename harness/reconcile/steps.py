"""Steps of readers: from one delivery to the next one that the same reader got of the same partition. Pure numpy.

The rows of a reader stand in its file in the order in which it got them. A task reads a part of a file, batch by
batch; the last row of each reader and partition is carried to the next batch, and what a task saw first and last is
told, so that steps from one task to the next can be found by who puts the tasks together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from harness.reconcile.blocks import (
    BITS,
    Columns,
    Count,
    Facts,
    Ints,
    Space,
    Summary,
    bit_of,
    folded,
    joined,
    mixed,
    place_of,
    total,
)

COLUMNS = ("reader", "topic", "partition", "t", "offset", "session", "seq", "flags", "generation")
LONGEST_JUMP = 1 << 12  # blocks; a longer one is not spread over its blocks (an offset may be anything)

Rows = dict[str, Ints]


@dataclass
class Trail:
    """What a task has seen of every reader and partition so far: the first row and the last one of each."""

    first: Rows = field(default_factory=dict)
    last: Rows = field(default_factory=dict)

    def walk(self, c: Columns) -> tuple[Rows, Rows]:
        """The steps that end in this batch: the rows that they come from, and the rows that they reach."""
        mine = {name: c[name] for name in COLUMNS}
        if not len(mine["t"]):
            return mine, mine
        carried = len(self.last["t"]) if self.last else 0
        rows = {name: np.r_[self.last[name], mine[name]] for name in COLUMNS} if carried else mine
        lane = lanes(rows)
        starts = np.flatnonzero(np.r_[True, lane[1:] != lane[:-1]])
        ends = np.r_[starts[1:], len(lane)] - 1
        before = np.arange(-1, len(lane) - 1)
        # Stretches of one lane, in order: each begins where the one before it ended, or nowhere.
        order = np.argsort(lane[starts], kind="stable")
        again = np.r_[False, lane[starts][order][1:] == lane[starts][order][:-1]]
        before[starts[order]] = np.where(again, np.r_[-1, ends[order][:-1]], -1)
        opening = starts[order][~again]
        closing = ends[order][np.r_[~again[1:], True]]
        new = opening[opening >= carried]
        fresh = {name: values[new] for name, values in rows.items()}
        self.first = {name: np.r_[self.first[name], fresh[name]] for name in COLUMNS} if self.first else fresh
        self.last = {name: values[closing] for name, values in rows.items()}
        reached = np.flatnonzero(before >= 0)
        reached = reached[reached >= carried]
        source = before[reached]
        return {n: v[source] for n, v in rows.items()}, {n: v[reached] for n, v in rows.items()}

    def edges(self) -> tuple[Rows, Rows]:
        """The first and the last row of each reader and partition, in the same order."""
        if not self.first:
            none = {name: np.zeros(0, dtype=np.int64) for name in COLUMNS}
            return none, none
        first, last = np.argsort(lanes(self.first)), np.argsort(lanes(self.last))
        return {n: v[first] for n, v in self.first.items()}, {n: v[last] for n, v in self.last.items()}


def lanes(rows: Mapping[str, Ints]) -> Ints:
    """Reader, topic and partition as one number."""
    return rows["reader"] << 40 | place_of(rows["topic"], rows["partition"])


def backwards(source: Rows, reached: Rows) -> Ints:
    return np.flatnonzero(reached["offset"] <= source["offset"])


def jumps(source: Rows, reached: Rows) -> Ints:
    """Steps that leave out at least one offset, and that no rebalance excuses."""
    far = reached["offset"] > source["offset"] + 1
    return np.flatnonzero(far & (reached["generation"] == source["generation"]))


def screen_steps(c: Columns, facts: Facts, trail: Trail) -> Summary:
    """How many steps there are, how many go back, and which positions were jumped over."""
    source, reached = trail.walk(c)
    back, far = backwards(source, reached), jumps(source, reached)
    first, last = source["offset"][far] + 1, reached["offset"][far] - 1
    place = place_of(reached["topic"][far], reached["partition"][far])
    long = (last >> BITS) - (first >> BITS) >= LONGEST_JUMP
    counts = [
        total(facts.run, Count.STEPS, len(reached["t"])),
        total(facts.run, Count.REWOUND, len(back)),
        total(facts.run, Count.LONG_JUMPS, int(long.sum())),
    ]
    return joined([_jumped_over(facts.run, place[~long], first[~long], last[~long]), *counts])


def _jumped_over(run: int, place: Ints, first: Ints, last: Ints) -> Summary:
    """Every offset from `first` to `last` of each jump as a bit of its block."""
    blocks = (last >> BITS) - (first >> BITS) + 1
    jump = np.repeat(np.arange(len(first)), blocks)
    block = (first >> BITS)[jump] + np.arange(len(jump)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    all_bits = np.full(len(jump), -1, dtype=np.int64)
    from_first = np.where(block == (first >> BITS)[jump], all_bits << (first & 63)[jump], all_bits)
    # The bits up to `last` are those below the next one, and `last` itself.
    end = bit_of(last[jump])
    to_last = np.where(block == (last >> BITS)[jump], (end - 1) | end, all_bits)
    jumped: Ints = np.bitwise_and(from_first, to_last)
    return folded(run, Space.POSITION, place[jump], block, m4=jumped)


def edges(run: int, trail: Trail) -> Summary:
    """What the task saw first and last, for stitching."""
    first, last = trail.edges()
    return folded(
        run, Space.READING, mixed(lanes(first)), first["t"],
        m0=first["offset"], m1=last["offset"], m2=first["generation"], m3=last["generation"],
        n0=np.ones_like(first["t"]), n1=first["reader"], n2=place_of(first["topic"], first["partition"]),
    )  # fmt: skip
