"""Keys in doubt: in several partitions, or in another order than they were sent. Pure numpy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from harness.reconcile.screen.screen import Screened
from harness.reconcile.screen.spaces import Space, Summary
from harness.reconcile.screen.summaries import BITS
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.select.ranges import Range


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
