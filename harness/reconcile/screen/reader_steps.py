"""Steps of readers: from one delivery to the next one that the same reader got of the same partition. Pure numpy.

The rows of a reader are in its file in the order in which it got them. A task reads a part of a file, batch by batch,
and carries the last row of each reader and partition over to the next batch. Each task also reports its first and last row
per reader and partition; the driver uses them to find steps across tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from harness.reconcile.arrays import Columns, Ints, mixed, place_of
from harness.reconcile.screen.spaces import Space, Summary
from harness.reconcile.screen.summaries import BITS, Count, bit_of, folded, joined, totals

if TYPE_CHECKING:
    from harness.reconcile.screen.facts import Facts

COLUMNS = ("reader", "topic", "partition", "t", "offset", "session", "seq", "flags", "generation")
LONGEST_JUMP = 1 << 12  # blocks; a longer one is not spread over its blocks (an offset may be anything)

Rows = dict[str, Ints]


@dataclass(frozen=True)
class Steps:
    """Steps that end in one batch, as numbers of rows: the row that each comes from and the row that it reaches."""

    carried: Rows  # the last row of each reader and partition before this batch; these are numbered first
    batch: Columns
    source: Ints
    reached: Ints

    def from_and_to(self, name: str, at: Ints | None = None) -> tuple[Ints, Ints]:
        """Return a column at both ends of all steps, or of some."""
        values = _column(self.carried, self.batch, name)
        source, reached = (self.source, self.reached) if at is None else (self.source[at], self.reached[at])
        return values[source], values[reached]

    def backwards(self) -> Ints:
        source, reached = self.from_and_to("offset")
        return np.flatnonzero(reached <= source)

    def jumps(self) -> Ints:
        """Return the steps that leave out at least one offset and that no rebalance excuses."""
        source, reached = self.from_and_to("offset")
        far = np.flatnonzero(reached > source + 1)
        before, after = self.from_and_to("generation", far)
        unexcused: Ints = far[before == after]
        return unexcused

    def rows(self, at: Ints) -> tuple[Rows, Rows]:
        """Return the rows that some steps come from, and the rows that they reach."""
        both = {name: self.from_and_to(name, at) for name in COLUMNS}
        return {name: ends[0] for name, ends in both.items()}, {name: ends[1] for name, ends in both.items()}


_NO_STEP = np.zeros(0, dtype=np.int64)


@dataclass
class Trail:
    """The first and the last row that a task has seen so far of every reader and partition."""

    first: Rows = field(default_factory=dict)
    last: Rows = field(default_factory=dict)

    def walk(self, batch: Columns) -> Steps:
        """Return the steps that end in this batch.

        Row      0 1 2 3 4      lane: reader and partition; the source of the first row of a lane is -1,
        lane     A A B A B      or the last row of that lane in an earlier batch.
        source  -1 0 -1 1 2
        """
        before = self.last
        if not len(batch["t"]):
            return Steps(before, batch, _NO_STEP, _NO_STEP)
        carried = len(before["t"]) if before else 0
        lane = np.concatenate([lanes(before), lanes(batch)]) if before else lanes(batch)
        starts = np.flatnonzero(np.r_[True, lane[1:] != lane[:-1]])
        ends = np.r_[starts[1:], len(lane)] - 1
        source = np.arange(-1, len(lane) - 1)
        # Stretches of one lane in order: the source of each is the end of the one before it, or -1.
        order = np.argsort(lane[starts], kind="stable")
        again = np.r_[False, lane[starts][order][1:] == lane[starts][order][:-1]]
        source[starts[order]] = np.where(again, np.r_[-1, ends[order][:-1]], -1)
        opening = starts[order][~again]
        closing = ends[order][np.r_[~again[1:], True]]
        new = opening[opening >= carried] - carried
        fresh = {name: batch[name][new] for name in COLUMNS}
        self.first = {name: np.r_[self.first[name], fresh[name]] for name in COLUMNS} if self.first else fresh
        self.last = {name: _column(before, batch, name)[closing] for name in COLUMNS}
        reached = np.flatnonzero(source >= 0)
        reached = reached[reached >= carried]
        return Steps(before, batch, source[reached], reached)

    def edges(self) -> tuple[Rows, Rows]:
        """Return the first and the last row of each reader and partition, in the same order."""
        if not self.first:
            none = {name: np.zeros(0, dtype=np.int64) for name in COLUMNS}
            return none, none
        first, last = np.argsort(lanes(self.first)), np.argsort(lanes(self.last))
        return {n: v[first] for n, v in self.first.items()}, {n: v[last] for n, v in self.last.items()}


def lanes(rows: Mapping[str, Ints]) -> Ints:
    """Return reader, topic and partition as one number."""
    return rows["reader"] << 40 | place_of(rows["topic"], rows["partition"])


def _column(carried: Rows, batch: Columns, name: str) -> Ints:
    values: Ints = np.concatenate([carried[name], batch[name]]) if carried else batch[name]
    return values


def screen_steps(c: Columns, facts: Facts, trail: Trail) -> Summary:
    """Count the steps and those that go back, and mark the positions that were jumped over."""
    steps = trail.walk(c)
    far = steps.jumps()
    source, reached = steps.rows(far)
    first, last = source["offset"] + 1, reached["offset"] - 1
    place = place_of(reached["topic"], reached["partition"])
    long = (last >> BITS) - (first >> BITS) >= LONGEST_JUMP
    counts = {
        Count.STEPS: len(steps.reached),
        Count.REWOUND: len(steps.backwards()),
        Count.LONG_JUMPS: int(long.sum()),
    }
    jumped = _jumped_over(facts.run, place[~long], first[~long], last[~long])
    return joined([jumped, totals(facts.run, counts)])


def _jumped_over(run: int, place: Ints, first: Ints, last: Ints) -> Summary:
    """Mark every offset from `first` to `last` of each jump as a bit of its block.

    A jump over 62 to 129 becomes three rows: block 0 bits 62-63, block 1 all bits, block 2 bits 0-1.
    """
    blocks = (last >> BITS) - (first >> BITS) + 1
    jump = np.repeat(np.arange(len(first)), blocks)
    block = (first >> BITS)[jump] + np.arange(len(jump)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    all_bits = np.full(len(jump), -1, dtype=np.int64)
    from_first = np.where(block == (first >> BITS)[jump], all_bits << (first & 63)[jump], all_bits)
    # All bits below that of `last`, and its own.
    end = bit_of(last[jump])
    to_last = np.where(block == (last >> BITS)[jump], (end - 1) | end, all_bits)
    jumped: Ints = np.bitwise_and(from_first, to_last)
    return folded(run, Space.POSITION, place[jump], block, jumped=jumped)


def edges(run: int, trail: Trail) -> Summary:
    """Summarise the first and the last row that the task saw of each reader and partition."""
    first, last = trail.edges()
    return folded(
        run, Space.READING, mixed(lanes(first)), first["t"],
        first_offset=first["offset"], last_offset=last["offset"],
        first_generation=first["generation"], last_generation=last["generation"],
        rows=np.ones_like(first["t"]), place_sum=place_of(first["topic"], first["partition"]),
    )  # fmt: skip
