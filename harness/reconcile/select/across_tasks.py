"""Doubts that need the summaries of all tasks: order, steps of readers, commits and keys. Pure numpy, on the driver.

A task sees a part of the log or of a reader's deliveries. Each function takes the small summary rows of the whole job
and returns what needs a closer look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.reconcile.arrays import Ints
from harness.reconcile.screen.partition_owners import SharedPartition
from harness.reconcile.screen.screen import Screened
from harness.reconcile.screen.spaces import Space, Summary, Why
from harness.reconcile.screen.summaries import Count, Facts
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.select.doubtful_keys import late_acks, late_sessions, split_keys
from harness.reconcile.select.ranges import EVERYTHING, Range


@dataclass(frozen=True)
class Overcommit:
    """A commit beyond what the group had been given. `given`: 1 + the highest offset that it had got; 0: nothing yet."""

    run: int
    place: int
    reader: int
    t: int
    offset: int
    given: int


@dataclass(frozen=True)
class Doubts:
    """Everything that is not sound, in all runs."""

    screened: Screened
    breaks: Summary  # as `broken_order` returns them
    jumped: tuple[Range, ...]  # between the ends of two tasks, or too long to be spread over blocks
    rewound: frozenset[int]  # runs with a reader that went back
    overcommits: tuple[Overcommit, ...]
    crossed: tuple[Range, ...]  # where keyed records may be in another order than they were sent
    split: Summary  # run, topic_and_key: keys that are in several partitions
    shared: tuple[SharedPartition, ...]  # partitions that two members of a group owned at once

    @property
    def any(self) -> bool:
        return any(self.reasons().values())

    @property
    def runs(self) -> set[int]:
        """Runs with something that is not sound."""
        blocks = self.screened.rows["run"][self.screened.why != 0]
        ranges = {found.run for found in (*self.jumped, *self.crossed)}
        ranges |= {over.run for over in self.overcommits} | {one.run for one in self.shared}
        rows = np.concatenate([blocks, self.breaks["run"], self.split["run"]])
        return set(np.unique(rows).tolist()) | ranges | self.rewound

    @property
    def about_steps(self) -> bool:
        return bool(self.rewound or self.jumped or self.reasons()[Space.POSITION] & Why.JUMPED)

    def reasons(self) -> dict[Space, Why]:
        """Return why a closer look is needed, by space."""
        reasons = {space: self.screened.reasons(space) for space in Space}
        if len(self.breaks["run"]):
            reasons[Space.RUN_OF_ORDER] |= Why.OVERTAKEN
        if self.jumped:
            reasons[Space.READING] |= Why.JUMPED
        if self.rewound:
            reasons[Space.READING] |= Why.REPEATED
        if self.overcommits:
            reasons[Space.GIVEN] |= Why.MISSING
        if self.shared:
            reasons[Space.OWNER] |= Why.REPEATED
        if self.crossed:
            reasons[Space.KEY] |= Why.KEYS_CROSSED
        if len(self.split["run"]):
            reasons[Space.KEY] |= Why.MISPLACED
        return reasons


def doubts(screened: Screened, facts: Sequence[Facts], sealed: Sequence[Sealed]) -> Doubts:
    edges = list(_edge_steps(screened.space(Space.READING)))
    jumped = [step.range for step in edges if step.jumps]
    if screened.count(Count.LONG_JUMPS):
        long = {(int(run), int(place)) for run, place in zip(*_lanes(screened), strict=True)}
        jumped += [Range(run, place, 0, EVERYTHING) for run, place in sorted(long)]
    totals = screened.space(Space.TOTAL)
    rewound = totals["run"][(totals["count"] == Count.REWOUND) & (totals["number"] > 0)].tolist()
    rewound += [step.run for step in edges if step.back]
    return Doubts(
        screened,
        broken_order(screened.space(Space.RUN_OF_ORDER)),
        tuple(jumped),
        frozenset(rewound),
        tuple(over for fact in facts for over in overcommits(screened.of(fact.run), fact)),
        tuple(
            found
            for one in sealed
            for mine in [screened.of(one.run)]
            for found in (*late_acks(mine), *late_sessions(mine, one))
        ),
        split_keys(screened.space(Space.KEY)),
        tuple(shared for fact in facts for shared in fact.owned.shared),
    )


def broken_order(runs: Summary) -> Summary:
    """Return the stretches of one session in one partition that contain a lower seq than a stretch before them.

    They have one more column, `seq_before`: the highest seq before them.

        first_offset last_offset least_seq highest_seq   seq_before
                   0           9         0           9
                  10          14        20          24
                  15          19        10          14           24   returned

    Stretches that overlap cannot be put in order. Then all of that session and partition is doubtful: each of its stretches
    is returned with the highest possible `seq_before`.
    """
    order = np.lexsort((runs["first_offset"], runs["lane"], runs["run"]))
    s = {name: values[order] for name, values in runs.items()}
    if not len(order):
        return s
    new = np.r_[True, (s["lane"][1:] != s["lane"][:-1]) | (s["run"][1:] != s["run"][:-1])]
    before = np.full(len(order), np.iinfo(np.int64).min)
    doubtful = np.zeros(len(order), dtype=bool)
    overlapping = s["rows"] > 1
    overlapping |= np.r_[False, ~new[1:] & (s["first_offset"][1:] <= s["last_offset"][:-1])]
    starts = np.flatnonzero(new)
    for first, last in zip(starts, np.r_[starts[1:], len(order)], strict=True):
        if overlapping[first:last].any():
            before[first:last], doubtful[first:last] = EVERYTHING, True
        else:
            highest = np.maximum.accumulate(s["highest_seq"][first:last])
            before[first + 1 : last] = highest[:-1]
            doubtful[first + 1 : last] = s["least_seq"][first + 1 : last] < highest[:-1]
    s["seq_before"] = before
    return {name: values[doubtful] for name, values in s.items()}


# --- readers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _EdgeStep:
    """A step of a reader from the last row of one task to the first row of the next task."""

    run: int
    place: int
    source: int
    reached: int
    excused: bool

    @property
    def back(self) -> bool:
        return self.reached <= self.source

    @property
    def jumps(self) -> bool:
        return self.reached > self.source + 1 and not self.excused

    @property
    def range(self) -> Range:
        return Range(self.run, self.place, self.source + 1, self.reached - 1)


def _edge_steps(s: Summary) -> Iterator[_EdgeStep]:
    order = np.lexsort((s["first_t"], s["lane"], s["run"]))
    rows = [{name: int(values[i]) for name, values in s.items()} for i in order]
    for before, after in pairwise(rows):
        if (before["run"], before["lane"]) == (after["run"], after["lane"]):
            excused = before["last_generation"] != after["first_generation"]
            yield _EdgeStep(
                before["run"], before["place_sum"], before["last_offset"], after["first_offset"], excused
            )
    for row in rows:
        if row["rows"] > 1:
            # Two tasks began at the same time, so their order is unknown: a step back and a jump over everything.
            place = row["place_sum"] // row["rows"]
            yield _EdgeStep(row["run"], place, EVERYTHING, 0, False)
            yield _EdgeStep(row["run"], place, -1, EVERYTHING, False)


def _lanes(screened: Screened) -> tuple[Ints, Ints]:
    s = screened.space(Space.READING)
    return s["run"], s["place_sum"] // np.maximum(s["rows"], 1)


# --- commits --------------------------------------------------------------------------------------


def overcommits(screened: Screened, facts: Facts) -> list[Overcommit]:
    """Return the commits of one run above a record that the group could read and had not been given by then."""
    found = []
    for place, commits in facts.commits.items():
        given = _reached(screened.space(Space.GIVEN), place, len(commits.t))
        below = _reached(screened.space(Space.BELOW), place, len(commits.t))
        known = below[np.searchsorted(commits.offsets_sorted, commits.offset, side="right") - 1]
        found += [
            Overcommit(
                facts.run,
                place,
                int(commits.reader[i]),
                int(commits.t[i]),
                int(commits.offset[i]),
                int(given[i]),
            )
            for i in np.flatnonzero(known > given)
        ]
    return found


def _reached(s: Summary, place: int, count: int) -> Ints:
    """Return the highest next_offset of each commit and all before it.

    Of five commits, 1 and 3 have a row, with next_offset 5 and 4: 0 5 5 5 5.
    """
    mine = s["place"] == place
    highest = np.zeros(count, dtype=np.int64)
    highest[s["commit"][mine]] = s["next_offset"][mine]
    return np.maximum.accumulate(highest)
