"""The first pass of the closer look: find the messages and positions that belong to those in doubt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile.arrays import Bools, Columns, Ints, place_of, unique_pairs
from harness.reconcile.screen.screen import arrays_of, by_runs
from harness.reconcile.screen.spaces import Space, Why
from harness.reconcile.screen.summaries import BITS
from harness.reconcile.seal.schema import LARGE
from harness.reconcile.select.doubts import Doubts
from harness.reconcile.select.wanted import Kind, Range, Ranges, Wanted, isin
from harness.reconcile.spark.source import Asked, Source, Work

STRANGERS = Why.UNEXPECTED | Why.CONTENT | Why.PLACE | Why.OBSERVED
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
_FOUND = ["kind", "run", "x", "y"]  # as in Wanted
_WHOLE = {Kind.MESSAGE: Kind.MESSAGES, Kind.POSITION: Kind.POSITIONS}
DENSE = 16  # items of a block of 64: from here on the whole block is wanted


def claimed_place(table: str, c: Columns) -> Ints:
    """Return the partition of each row: for an attempt the one that the ack named."""
    return place_of(c["topic"], c["told_partition" if table == "attempts" else "partition"])


def ours(c: Columns) -> Bools:
    """Mark the rows whose payload is intact and of this run, so that their fields can be trusted."""
    intact: Bools = (c["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)) == 0
    return intact


def related(source: Source, doubts: Doubts) -> Wanted:
    """Return all that is wanted: doubtful blocks, and the messages and positions that belong to them."""
    wanted = Wanted()
    for kind, space in ((Kind.MESSAGES, Space.MESSAGE), (Kind.POSITIONS, Space.POSITION)):
        wanted.add_blocks(kind, doubts.screened.doubtful(space))
    search = Search.of(doubts)
    if search:
        asked = {name: Asked(NEEDED[name], search.work(name)) for name in LARGE}
        found = arrays_of(source.each(asked, ", ".join(f"{name} bigint" for name in _FOUND)))
        for kind in Kind:
            mine = found["kind"] == kind
            wanted.add(kind, *(found[name][mine] for name in ("run", "x", "y")))
    return wanted


@dataclass(frozen=True)
class Search:
    """Blocks and ranges in doubt whose messages or positions have to be found."""

    moved: Wanted  # blocks of messages that are not where their acks say; find their positions
    # Blocks of positions where readers got other messages than the log has; find these messages.
    strange: Wanted
    keyed: Ranges  # keyed messages may be out of order here; find them
    passed: Ranges  # a reader or a commit passed over records here; find their positions
    split: Mapping[int, Ints]  # topic and key of keys that are in several partitions; find their messages
    broken: Sequence[Mapping[str, int]]  # stretches of one session that are too late; find their messages

    @classmethod
    def of(cls, doubts: Doubts) -> Search:
        moved, strange = Wanted(), Wanted()
        moved.add_blocks(Kind.MESSAGES, doubts.screened.doubtful(Space.MESSAGE, Why.PLACE))
        strange.add_blocks(Kind.POSITIONS, doubts.screened.doubtful(Space.POSITION, STRANGERS))
        unread = [Range(over.run, over.place, over.given, over.offset - 1) for over in doubts.overcommits]
        runs = doubts.split["run"]
        breaks = doubts.breaks
        return cls(
            moved,
            strange,
            Ranges.of(doubts.crossed),
            Ranges.of([*doubts.jumped, *unread]),
            {run: np.sort(doubts.split["topic_and_key"][runs == run]) for run in np.unique(runs).tolist()},
            [
                {
                    "run": int(breaks["run"][i]), "session": int(breaks["session_sum"][i] // breaks["rows"][i]),
                    "place": int(breaks["place_sum"][i] // breaks["rows"][i]), "first": int(breaks["first_offset"][i]),
                    "last": int(breaks["last_offset"][i]), "before": int(breaks["seq_before"][i]),
                }
                for i in range(len(breaks["run"]))
            ],
        )  # fmt: skip

    def __bool__(self) -> bool:
        return bool(
            self.moved.blocks or self.strange.blocks or self.keyed or self.passed or self.split or self.broken
        )

    def work(self, table: str) -> Work:
        def search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for run, c in by_runs(batches, NEEDED[table]):
                for kind, x, y in (*self._of_blocks(table, run, c), *self._of_ranges(table, run, c)):
                    yield from _batches(run, kind, x, y)

        return search

    def _of_blocks(self, table: str, run: int, c: Columns) -> Iterator[tuple[Kind, Ints, Ints]]:
        """Yield the positions of every message in a doubtful block, and the messages at every doubtful position.

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
        passed = self.passed.overlap(run, place, offset, offset)
        yield Kind.POSITIONS, place[passed], offset[passed] >> BITS
        keyed = ours(c) & (c["key"] >= 0) & (c["intended_partition"] < 0)
        mixed_up = keyed & self.keyed.overlap(run, place, offset, offset)
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
    """Yield each item once; many items of one block as the block, since millions of single items would fill the driver."""
    pairs = np.stack(unique_pairs(x, y)[:2])
    parts = [(kind, pairs)]
    if kind in _WHOLE:
        blocks = np.stack([pairs[0], pairs[1] >> BITS])  # in order, as the pairs are
        starts = np.flatnonzero(np.r_[True, (blocks[:, 1:] != blocks[:, :-1]).any(axis=0)][: pairs.shape[1]])
        counts = np.diff(np.r_[starts, pairs.shape[1]])
        dense = counts >= DENSE
        parts = [(_WHOLE[kind], blocks[:, starts[dense]]), (kind, pairs[:, np.repeat(~dense, counts)])]
    for of_kind, found in parts:
        same = np.ones(found.shape[1], dtype=np.int64)
        columns = (same * of_kind, same * run, found[0], found[1])
        yield pa.RecordBatch.from_arrays(list(map(pa.array, columns)), _FOUND)
