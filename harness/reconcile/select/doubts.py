"""Everything in doubt: what the summaries of all tasks together do not prove to be sound. Pure numpy, on the driver.

Blocks come from screening as they are. Order, steps of readers, commits and keys need the summaries of the whole job,
because a task sees a part of the log or of a reader's deliveries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.reconcile.screen.facts import Facts
from harness.reconcile.screen.partition_owners import SharedPartition
from harness.reconcile.screen.screen import Screened
from harness.reconcile.screen.spaces import Space, Summary, Why
from harness.reconcile.screen.summaries import BITS, Count
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.select.readers import Overcommit, edge_steps, overcommits
from harness.reconcile.select.wanted import EVERYTHING, Range, Ranges


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
    def left_out(self) -> Ranges | None:
        """The offsets that readers may have left out; None: no step of a reader is in doubt."""
        blocks = self.screened.doubtful(Space.POSITION, Why.JUMPED)
        names = (blocks[name].tolist() for name in ("run", "place", "offset_block"))
        found = [Range(run, place, n << BITS, (n << BITS) + 63) for run, place, n in zip(*names, strict=True)]
        return Ranges.of([*found, *self.jumped]) if found or self.jumped or self.rewound else None

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
    readings = screened.space(Space.READING)
    edges = list(edge_steps(readings))
    jumped = [step.range for step in edges if step.jumps]
    if screened.count(Count.LONG_JUMPS):
        places = readings["place_sum"] // np.maximum(readings["rows"], 1)
        long = set(zip(readings["run"].tolist(), places.tolist(), strict=True))
        jumped += [Range(run, place, 0, EVERYTHING) for run, place in sorted(long)]
    totals = screened.space(Space.TOTAL)
    rewound = totals["run"][(totals["count"] == Count.REWOUND) & (totals["number"] > 0)].tolist()
    rewound += [step.run for step in edges if step.back]
    crossed: list[Range] = []
    for one in sealed:
        mine = screened.of(one.run)
        crossed += [*late_acks(mine), *late_sessions(mine, one)]
    return Doubts(
        screened,
        broken_order(screened.space(Space.RUN_OF_ORDER)),
        tuple(jumped),
        frozenset(rewound),
        tuple(over for fact in facts for over in overcommits(screened.of(fact.run), fact)),
        tuple(crossed),
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


# --- keys ---------------------------------------------------------------------------------------


def split_keys(s: Summary) -> Summary:
    """Return the keys that are in several partitions: run, topic_and_key."""
    order = np.lexsort((s["topic_and_key_block"], s["run"]))
    run, block, mask = (s[name][order] for name in ("run", "topic_and_key_block", "keys"))
    if not len(order):
        return {"run": run, "topic_and_key": block}
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
    split = np.array(found, dtype=np.int64).reshape(-1, 2)
    return {"run": split[:, 0], "topic_and_key": split[:, 1]}


def late_acks(screened: Screened) -> Iterable[Range]:
    """Yield the ranges where a keyed record was sent after one behind it in the log had been acked, by slots of time."""
    acked, sent = screened.space(Space.KEY_ACKED), screened.space(Space.KEY_SENT)
    for place in np.unique(sent["place"]).tolist():
        of_acks, of_sends = acked["place"] == place, sent["place"] == place
        order = np.argsort(acked["slot"][of_acks])
        slots = acked["slot"][of_acks][order]
        highest = np.maximum.accumulate(acked["highest_offset"][of_acks][order])
        # Two slots before that of the attempt or earlier: every ack at least CONCURRENT_NS before it is there.
        before = np.searchsorted(slots, sent["slot"][of_sends] - 2, side="right") - 1
        acked_up_to = np.where(before >= 0, highest[before], -1)
        lowest = -sent["minus_lowest_offset"][of_sends]
        for i in np.flatnonzero(lowest < acked_up_to):
            yield Range(int(sent["run"][0]), place, int(lowest[i]), int(acked_up_to[i]))


def late_sessions(screened: Screened, sealed: Sealed) -> Iterable[Range]:
    """Yield the ranges where records of an earlier incarnation of a producer are behind those of a later one."""
    s = screened.space(Space.RUN_OF_ORDER)
    spans: dict[tuple[int, int], tuple[int, int]] = {}  # session, place -> first and last offset
    sessions, places = (s[name] // np.maximum(s["rows"], 1) for name in ("session_sum", "place_sum"))
    for session, place, first, last in zip(
        sessions, places, s["first_offset"], s["last_offset"], strict=True
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
