"""What only shows when the parts are put together: questions that screening answers on the driver. Pure numpy.

A task sees a part of the log or of a reader's trail; order, commits and keys need what other tasks saw. Each function
takes the small summary rows of the whole job and gives what has to be looked at more closely.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.reconcile.arrays import Ints
from harness.reconcile.screen.partition_owners import SharedPartition
from harness.reconcile.screen.screen import Screened
from harness.reconcile.screen.summaries import BITS, Count, Facts, Space, Summary, Why
from harness.reconcile.seal.sealed import Sealed

EVERYTHING = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Range:
    """Offsets of one partition that need a closer look, both ends included."""

    run: int
    place: int
    first: int
    last: int


@dataclass(frozen=True)
class Overcommit:
    """A commit beyond what the group had been given. `given`: from which offset on it had not; 0: nothing yet."""

    run: int
    place: int
    reader: int
    t: int
    offset: int
    given: int


@dataclass(frozen=True)
class Doubts:
    """All that is not sound, of all runs."""

    screened: Screened
    breaks: Summary  # as `broken_order` gives them
    jumped: tuple[Range, ...]  # between the ends of two tasks, or too long to be spread over blocks
    rewound: frozenset[int]  # runs with a reader that went back
    overcommits: tuple[Overcommit, ...]
    crossed: tuple[Range, ...]  # where keyed records may stand in another order than they were sent
    split: Summary  # run, a: topic and key of keys that stand in several partitions
    shared: tuple[SharedPartition, ...]  # partitions that two members of a group owned at once

    @property
    def any(self) -> bool:
        return any(self.reasons().values())

    @property
    def runs(self) -> set[int]:
        """Runs of which something is not sound."""
        blocks = self.screened.rows["run"][self.screened.why != 0]
        ranges = {found.run for found in (*self.jumped, *self.crossed)}
        ranges |= {over.run for over in self.overcommits} | {one.run for one in self.shared}
        rows = np.concatenate([blocks, self.breaks["run"], self.split["run"]])
        return set(np.unique(rows).tolist()) | ranges | self.rewound

    @property
    def about_steps(self) -> bool:
        return bool(self.rewound or self.jumped or self.reasons()[Space.POSITION] & Why.JUMPED)

    def reasons(self) -> dict[Space, Why]:
        """Why a closer look is needed, by what it is about."""
        reasons = {space: self.screened.reasons(space) for space in Space}
        if len(self.breaks["a"]):
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
        if len(self.split["a"]):
            reasons[Space.KEY] |= Why.MISPLACED
        return reasons


def doubts(screened: Screened, facts: Sequence[Facts], sealed: Sequence[Sealed]) -> Doubts:
    edges = list(_edge_steps(screened.space(Space.READING)))
    jumped = [step.range for step in edges if step.jumps]
    if screened.count(Count.LONG_JUMPS):
        long = {(int(run), int(place)) for run, place in zip(*_lanes(screened), strict=True)}
        jumped += [Range(run, place, 0, EVERYTHING) for run, place in sorted(long)]
    totals = screened.space(Space.TOTAL)
    rewound = totals["run"][(totals["a"] == Count.REWOUND) & (totals["n0"] > 0)].tolist()
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
            for found in (*_late_acks(mine), *_late_sessions(mine, one))
        ),
        split_keys(screened.space(Space.KEY)),
        tuple(shared for fact in facts for shared in fact.owned.shared),
    )


def broken_order(runs: Summary) -> Summary:
    """Stretches of one session in one partition, in order of offsets, that begin below what came before them.

    Gives them with m3 the highest seq before. Stretches that overlap cannot be put in order: then all of that
    session and partition is doubtful, told as a stretch that is below everything.
    """
    order = np.lexsort((runs["b"], runs["a"], runs["run"]))
    s = {name: values[order] for name, values in runs.items()}
    if not len(order):
        return s
    new = np.r_[True, (s["a"][1:] != s["a"][:-1]) | (s["run"][1:] != s["run"][:-1])]
    before = np.full(len(order), np.iinfo(np.int64).min)
    doubtful = np.zeros(len(order), dtype=bool)
    overlapping = (s["n0"] > 1) | np.r_[False, ~new[1:] & (s["b"][1:] <= s["m0"][:-1])]
    starts = np.flatnonzero(new)
    for first, last in zip(starts, np.r_[starts[1:], len(order)], strict=True):
        if overlapping[first:last].any():
            before[first:last], doubtful[first:last] = EVERYTHING, True
        else:
            highest = np.maximum.accumulate(s["m2"][first:last])
            before[first + 1 : last] = highest[:-1]
            doubtful[first + 1 : last] = s["m1"][first + 1 : last] < highest[:-1]
    s["m3"] = before
    return {name: values[doubtful] for name, values in s.items()}


# --- readers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _EdgeStep:
    """A step from what one task saw last of a reader and partition to what the next task saw first."""

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
    order = np.lexsort((s["b"], s["a"], s["run"]))
    rows = [{name: int(values[i]) for name, values in s.items()} for i in order]
    for before, after in pairwise(rows):
        if (before["run"], before["a"]) == (after["run"], after["a"]):
            excused = before["m3"] != after["m2"]
            yield _EdgeStep(before["run"], before["n2"], before["m1"], after["m0"], excused)
    for row in rows:
        if row["n0"] > 1:
            # Two tasks began with the same moment: which came first cannot be told from the summary.
            place = row["n2"] // row["n0"]
            yield _EdgeStep(row["run"], place, EVERYTHING, 0, False)
            yield _EdgeStep(row["run"], place, -1, EVERYTHING, False)


def _lanes(screened: Screened) -> tuple[Ints, Ints]:
    s = screened.space(Space.READING)
    return s["run"], s["n2"] // np.maximum(s["n0"], 1)


# --- commits --------------------------------------------------------------------------------------


def overcommits(screened: Screened, facts: Facts) -> list[Overcommit]:
    """Commits of one run above a record that the group could read and had not been given by then."""
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
    """The highest x of each number and all before it."""
    mine = s["a"] == place
    highest = np.zeros(count, dtype=np.int64)
    highest[s["b"][mine]] = s["x"][mine]
    return np.maximum.accumulate(highest)


# --- keys -----------------------------------------------------------------------------------------


def split_keys(s: Summary) -> Summary:
    """Keys that stand in several partitions: run, and a, the topic and the key."""
    order = np.lexsort((s["a"], s["run"]))
    run, block, mask = (s[name][order] for name in ("run", "a", "m0"))
    if not len(order):
        return {"run": run, "a": block}
    starts = np.flatnonzero(np.r_[True, (run[1:] != run[:-1]) | (block[1:] != block[:-1])])
    # Where the partitions together have more bits than there are keys, a key was counted twice.
    bits = np.add.reduceat(np.bitwise_count(mask.view(np.uint64)).astype(np.int64), starts)
    keys = np.bitwise_count(np.bitwise_or.reduceat(mask, starts).view(np.uint64))
    found: list[tuple[int, int]] = []
    ends = np.r_[starts[1:], len(order)]
    for first, last in zip(starts[bits > keys], ends[bits > keys], strict=True):
        columns = (mask[first:last, None].view(np.uint64) >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        topic, number = int(block[first]) >> 32, int(block[first]) & 0xFFFF_FFFF
        found += [
            (int(run[first]), topic << 32 | (number << BITS) + bit)
            for bit in np.flatnonzero(columns.sum(axis=0) > 1).tolist()
        ]
    told = np.array(found, dtype=np.int64).reshape(-1, 2)
    return {"run": told[:, 0], "a": told[:, 1]}


def _late_acks(screened: Screened) -> Iterable[Range]:
    """Where a keyed record was attempted after one that stands behind it had been acked, by slots of time."""
    acked, sent = screened.space(Space.KEY_ACKED), screened.space(Space.KEY_SENT)
    for place in np.unique(sent["a"]).tolist():
        of_acks, of_sends = acked["a"] == place, sent["a"] == place
        order = np.argsort(acked["b"][of_acks])
        slots, highest = acked["b"][of_acks][order], np.maximum.accumulate(acked["x"][of_acks][order])
        # Slots before the one that precedes the attempt's: an ack at least CONCURRENT_NS before lies in one of them.
        before = np.searchsorted(slots, sent["b"][of_sends] - 2, side="right") - 1
        acked_up_to = np.where(before >= 0, highest[before], -1)
        lowest = -sent["x"][of_sends]
        for i in np.flatnonzero(lowest < acked_up_to):
            yield Range(int(sent["run"][0]), place, int(lowest[i]), int(acked_up_to[i]))


def _late_sessions(screened: Screened, sealed: Sealed) -> Iterable[Range]:
    """Where an earlier incarnation of a producer stands behind a later one."""
    s = screened.space(Space.RUN_OF_ORDER)
    spans: dict[tuple[int, int], tuple[int, int]] = {}  # session, place -> first and last offset
    for session, place, first, last in zip(
        s["n1"] // np.maximum(s["n0"], 1), s["n2"] // np.maximum(s["n0"], 1), s["b"], s["m0"], strict=True
    ):
        lowest, highest = spans.get((int(session), int(place)), (int(first), int(last)))
        spans[int(session), int(place)] = min(lowest, int(first)), max(highest, int(last))
    incarnations = {one.session: (one.producer, one.incarnation) for one in sealed.sessions}
    lives: dict[tuple[str, int], list[tuple[int, int, int]]] = defaultdict(list)
    for (session, place), (first, last) in spans.items():
        producer, incarnation = incarnations.get(session, ("", 0))
        lives[producer, place].append((incarnation, first, last))
    for (_, place), found in lives.items():
        highest = -1
        for _, first, last in sorted(found):
            if first < highest:
                yield Range(sealed.run, place, first, highest)
            highest = max(highest, last)
