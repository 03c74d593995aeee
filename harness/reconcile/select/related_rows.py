"""The first pass of the closer look: what else belongs to what is in doubt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile.arrays import Bools, Columns, Ints, place_of, unique_pairs
from harness.reconcile.screen.screen import by_runs
from harness.reconcile.screen.summaries import BITS, Space, Why
from harness.reconcile.select.across_tasks import Doubts, Range
from harness.reconcile.select.row_keys import Kind, Wanted, doubted, isin
from harness.reconcile.spark.source import Work

STRANGERS = Why.NOBODYS | Why.CONTENT | Why.PLACE | Why.OBSERVED
HUNTED = "kind bigint, run bigint, x bigint, y bigint"
# The columns that say which message a row is about and where it is.
WHICH_AND_WHERE: Mapping[str, tuple[str, ...]] = {
    "attempts": ("session", "seq", "topic", "told_partition", "offset"),
    "log": ("session", "seq", "topic", "partition", "offset"),
    "deliveries": ("session", "seq", "topic", "partition", "offset"),
}
NEEDED: Mapping[str, tuple[str, ...]] = {
    "attempts": WHICH_AND_WHERE["attempts"],
    "log": (*WHICH_AND_WHERE["log"], "key", "intended_partition", "flags"),
    "deliveries": (*WHICH_AND_WHERE["deliveries"], "flags"),
}
_NAMES = ["kind", "run", "x", "y"]
WHOLE = {Kind.MESSAGE: Kind.MESSAGES, Kind.POSITION: Kind.POSITIONS}
DENSE = 16  # single ones of a block of 64: from here on the block is wanted


def claimed_place(table: str, c: Columns) -> Ints:
    """Where a row says that its message stands."""
    return place_of(c["topic"], c["told_partition" if table == "attempts" else "partition"])


def ours(c: Columns) -> Bools:
    """Whose payload is intact and of this run, so that its fields can be believed."""
    intact: Bools = (c["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)) == 0
    return intact


@dataclass(frozen=True)
class Hunt:
    """What else to look for."""

    moved: Wanted  # blocks of messages that do not stand where their acks say: where do they stand?
    strange: Wanted  # blocks of positions where readers got somebody else than the log has: whom?
    keyed: Mapping[
        tuple[int, int], tuple[Ints, Ints]
    ]  # ranges where keyed messages may be out of order: which?
    passed: Mapping[
        tuple[int, int], tuple[Ints, Ints]
    ]  # ranges that a reader or a commit passed over: what is there?
    split: Mapping[int, Ints]  # topic and key of keys that stand in several partitions: whose?
    broken: Sequence[Mapping[str, int]]  # stretches of one session that stand too late

    @classmethod
    def of(cls, doubts: Doubts) -> Hunt:
        moved = doubted(Kind.MESSAGES, doubts.screened.doubtful(Space.MESSAGE), Why.PLACE)
        strange = doubted(Kind.POSITIONS, doubts.screened.doubtful(Space.POSITION), STRANGERS)
        unread = [Range(over.run, over.place, over.given, over.offset - 1) for over in doubts.overcommits]
        runs = doubts.split["run"]
        breaks = doubts.breaks
        return cls(
            moved,
            strange,
            _ranges(doubts.crossed),
            _ranges([*doubts.jumped, *unread]),
            {run: np.sort(doubts.split["a"][runs == run]) for run in np.unique(runs).tolist()},
            [
                {
                    "run": int(breaks["run"][i]), "session": int(breaks["n1"][i] // breaks["n0"][i]),
                    "place": int(breaks["n2"][i] // breaks["n0"][i]), "first": int(breaks["b"][i]),
                    "last": int(breaks["m0"][i]), "before": int(breaks["m3"][i]),
                }
                for i in range(len(breaks["a"]))
            ],
        )  # fmt: skip

    def __bool__(self) -> bool:
        return bool(
            self.moved.blocks or self.strange.blocks or self.keyed or self.passed or self.split or self.broken
        )

    def work(self, table: str) -> Work:
        def hunt(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for run, c in by_runs(batches, NEEDED[table]):
                for kind, x, y in (*self._of_blocks(table, run, c), *self._of_ranges(table, run, c)):
                    yield from _batches(run, kind, x, y)

        return hunt

    def _of_blocks(self, table: str, run: int, c: Columns) -> Iterator[tuple[Kind, Ints, Ints]]:
        """The positions of every message in a doubtful block, and the messages at every doubtful position.

        At this stage the block is all that is known.
        """
        session, seq, place, offset = c["session"], c["seq"], claimed_place(table, c), c["offset"]
        moved = self.moved.holds(run, Kind.MESSAGES, session, seq >> BITS) & (offset >= 0)
        yield Kind.POSITION, place[moved], offset[moved]
        if table == "deliveries":
            strange = self.strange.holds(run, Kind.POSITIONS, place, offset >> BITS) & ours(c)
            yield Kind.MESSAGE, session[strange], seq[strange]

    def _of_ranges(self, table: str, run: int, c: Columns) -> Iterator[tuple[Kind, Ints, Ints]]:
        if table != "log":
            return
        session, seq, place, offset = c["session"], c["seq"], claimed_place(table, c), c["offset"]
        passed = _in_ranges(run, place, offset, self.passed)
        yield Kind.POSITIONS, place[passed], offset[passed] >> BITS
        keyed = ours(c) & (c["key"] >= 0) & (c["intended_partition"] < 0)
        mixed_up = keyed & _in_ranges(run, place, offset, self.keyed)
        if run in self.split:
            mixed_up |= keyed & isin(place_of(c["topic"], c["key"]), self.split[run])
        yield Kind.MESSAGE, session[mixed_up], seq[mixed_up]
        for stretch in self.broken:
            if stretch["run"] == run:
                behind = (
                    (session == stretch["session"]) & (place == stretch["place"]) & (seq < stretch["before"])
                )
                behind &= (offset >= stretch["first"]) & (offset <= stretch["last"])
                # The message ahead of them is needed too: finders compare it with them.
                ahead = np.array([stretch["before"]])
                yield (
                    Kind.MESSAGES,
                    np.r_[session[behind], stretch["session"]],
                    np.r_[seq[behind], ahead] >> BITS,
                )


def _batches(run: int, kind: Kind, x: Ints, y: Ints) -> Iterator[pa.RecordBatch]:
    """What was found, once each; many of one block as the block, since millions of single ones would fill the driver."""
    pairs = np.stack(unique_pairs(x, y)[:2])
    parts = [(kind, pairs)]
    if kind in WHOLE:
        blocks = np.stack([pairs[0], pairs[1] >> BITS])  # in order, as the pairs are
        starts = np.flatnonzero(np.r_[True, (blocks[:, 1:] != blocks[:, :-1]).any(axis=0)][: pairs.shape[1]])
        counts = np.diff(np.r_[starts, pairs.shape[1]])
        dense = counts >= DENSE
        parts = [(WHOLE[kind], blocks[:, starts[dense]]), (kind, pairs[:, np.repeat(~dense, counts)])]
    for of_kind, found in parts:
        same = np.ones(found.shape[1], dtype=np.int64)
        columns = (same * of_kind, same * run, found[0], found[1])
        yield pa.RecordBatch.from_arrays(list(map(pa.array, columns)), _NAMES)


def _ranges(ranges: Sequence[Range]) -> dict[tuple[int, int], tuple[Ints, Ints]]:
    """By run and place the first offsets in order, and up to where the ranges so far reach."""
    found = {}
    for run, place in {(r.run, r.place) for r in ranges}:
        ends = np.array(
            sorted((r.first, r.last) for r in ranges if (r.run, r.place) == (run, place)), dtype=np.int64
        )
        found[run, place] = ends[:, 0], np.maximum.accumulate(ends[:, 1])
    return found


def _in_ranges(
    run: int, place: Ints, offset: Ints, ranges: Mapping[tuple[int, int], tuple[Ints, Ints]]
) -> Bools:
    inside = np.zeros(len(offset), dtype=np.bool_)
    for (of_run, of_place), (firsts, lasts) in ranges.items():
        if of_run == run:
            mine = np.flatnonzero(place == of_place)
            at = np.searchsorted(firsts, offset[mine], side="right") - 1
            inside[mine] = (at >= 0) & (lasts[at] >= offset[mine])
    return inside
