"""The closer look: the rows that screening could not call sound, and only those, for the finders to compare one by one.

Finders ask two kinds of question: about a message (all rows that name it) and about a position (all rows that stand
there). So each chosen row says for which of them it was chosen, and each derived table is made of the rows of its own
kind: a message is only judged when all its rows are there, and so is a position.

Two passes over the tables, by kernels like those of screening. The first (`_hunt`) finds what else belongs to what is in
doubt; the second (`_pick`) picks the rows. What is wanted is told to the kernels as sets of hashes of 64 bits: should two
collide, some rows too many are picked, all of their message or position, and nothing is judged otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from harness.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile import trails
from harness.reconcile.blocks import BITS, Bools, Columns, Ints, Space, Why, mixed, place_of, weigh
from harness.reconcile.schema import LARGE, SCHEMAS, spark_schema
from harness.reconcile.screen import arrays_of, by_runs
from harness.reconcile.source import Source, Work
from harness.reconcile.stitch import Doubts, Overcommit, Range

# The payload is intact and of this run, so that its fields can be believed.
OURS = f"flags & {BAD_PAYLOAD | FOREIGN_RUN} = 0"

FEW_BLOCKS, TINY_BLOCKS = 1 << 13, 1 << 9  # of 64 messages or positions
AT_A_TIME = 2

_STRANGERS = Why.NOBODYS | Why.CONTENT | Why.PLACE
_NONE = np.zeros(0, dtype=np.int64)


class Kind(IntEnum):
    """What x and y of something wanted say."""

    MESSAGES = 0  # session, block of seqs
    MESSAGE = 1  # session, seq
    POSITIONS = 2  # place, block of offsets
    POSITION = 3  # place, offset


@dataclass(frozen=True)
class Chosen:
    """Rows of the three large tables: those of doubtful messages, and those at doubtful positions."""

    by_message: Mapping[str, DataFrame]
    by_position: Mapping[str, DataFrame]
    either: Mapping[str, DataFrame]
    steps: DataFrame  # of readers, as harness.reconcile.trails gives them
    few: bool  # so few rows that they are kept as they are, and not as a plan with a cache
    tiny: bool  # so few that compiling a query takes longer than running it as it is
    overcommits: DataFrame  # run, topic, partition, reader, t, offset, given (null: nothing yet)

    def unpersist(self) -> None:
        for frame in self.either.values():
            frame.unpersist()


def choose(spark: SparkSession, source: Source, doubts: Doubts) -> Chosen:
    """The rows that need a closer look.

    Whole blocks where screening knows no better; one by one where it does, since the others of their blocks would
    only be carried along.
    """
    wanted = _doubtful_blocks(doubts)
    hunt = _Hunt.of(doubts)
    if hunt:
        found = arrays_of(source.each({name: (_NEEDED[name], hunt.work(name)) for name in LARGE}, _HUNTED))
        for kind in Kind:
            mine = found["kind"] == kind
            wanted.add(kind, *(found[name][mine] for name in ("run", "x", "y")))
    few = wanted.blocks <= FEW_BLOCKS
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="choose") as pool:
        steps = pool.submit(trails.steps, spark, source, doubts)
        picked = {name: pool.submit(kept, spark, _picked(source, name, wanted), few=few) for name in LARGE}
    either = {name: future.result() for name, future in picked.items()}
    return Chosen(
        {name: frame.where("by_message") for name, frame in either.items()},
        {name: frame.where("by_position") for name, frame in either.items()},
        either,
        steps.result(),
        few,
        wanted.blocks <= TINY_BLOCKS,
        _overcommits(spark, doubts.overcommits),
    )


def kept(spark: SparkSession, frame: DataFrame, *, few: bool) -> DataFrame:
    """The rows of a frame for many queries: few as a table of their own, which plans like nothing; else in the cache."""
    return local(spark, frame.toArrow()) if few else frame.persist()


def local(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Rows of this process as a table of Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return (
        spark.createDataFrame(table)
        if table.num_rows
        else spark.createDataFrame([], from_arrow_schema(table.schema))
    )


def _overcommits(spark: SparkSession, found: Sequence[Overcommit]) -> DataFrame:
    columns = {name: pa.array([getattr(o, name) for o in found], pa.int64())
               for name in ("run", "place", "reader", "t", "offset", "given")}  # fmt: skip
    return local(spark, pa.table(columns)).selectExpr(
        "run", "CAST(shiftright(place, 32) AS int) AS topic", "CAST(place & 4294967295 AS int) AS partition",
        "CAST(reader AS int) AS reader", "t", "offset", "nullif(given, 0) AS given",
    )  # fmt: skip


# --- what is wanted -------------------------------------------------------------------------------


def _key(run: int | Ints, kind: Kind, x: Ints, y: Ints) -> Ints:
    return mixed(np.broadcast_to(np.int64(run) * 4 + kind, x.shape), x, y)


@dataclass
class _Wanted:
    """Keys of messages and positions, by kind."""

    keys: dict[Kind, Ints] = field(default_factory=lambda: dict.fromkeys(Kind, _NONE))

    def add(self, kind: Kind, run: Ints, x: Ints, y: Ints) -> None:
        self.keys[kind] = np.union1d(self.keys[kind], _key(run, kind, x, y))

    @property
    def blocks(self) -> int:
        """How many blocks, or their worth in single ones."""
        single = len(self.keys[Kind.MESSAGE]) + len(self.keys[Kind.POSITION])
        return len(self.keys[Kind.MESSAGES]) + len(self.keys[Kind.POSITIONS]) + (single >> BITS)

    def holds(self, run: int, kind: Kind, x: Ints, y: Ints) -> Bools:
        if not len(self.keys[kind]):
            return np.zeros(len(x), dtype=np.bool_)
        return _isin(_key(run, kind, x, y), self.keys[kind])


def _isin(values: Ints, known: Ints) -> Bools:
    """As np.isin, for a sorted and usually short array."""
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: Bools = known[at] == values
    return found


def _doubtful_blocks(doubts: Doubts) -> _Wanted:
    wanted = _Wanted()
    for kind, space in ((Kind.MESSAGES, Space.MESSAGE), (Kind.POSITIONS, Space.POSITION)):
        s = doubts.screened.doubtful(space)
        wanted.add(kind, s["run"], s["a"], s["b"])
    return wanted


# --- the first pass -------------------------------------------------------------------------------

_HUNTED = "kind bigint, run bigint, x bigint, y bigint"
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "attempts": ("session", "seq", "topic", "told_partition", "offset"),
    "log": ("session", "seq", "topic", "partition", "offset", "key", "intended_partition", "flags"),
    "deliveries": ("session", "seq", "topic", "partition", "offset", "flags"),
}


@dataclass(frozen=True)
class _Hunt:
    """What else to look for."""

    moved: _Wanted  # blocks of messages that do not stand where their acks say: where do they stand?
    strange: _Wanted  # blocks of positions where readers got somebody else than the log has: whom?
    keyed: Mapping[
        tuple[int, int], tuple[Ints, Ints]
    ]  # ranges where keyed messages may be out of order: which?
    passed: Mapping[
        tuple[int, int], tuple[Ints, Ints]
    ]  # ranges that a reader or a commit passed over: what is there?
    split: Mapping[int, Ints]  # topic and key of keys that stand in several partitions: whose?
    broken: Sequence[Mapping[str, int]]  # stretches of one session that stand too late

    @classmethod
    def of(cls, doubts: Doubts) -> _Hunt:
        messages, positions = (
            doubts.screened.doubtful(Space.MESSAGE),
            doubts.screened.doubtful(Space.POSITION),
        )
        moved, strange = _Wanted(), _Wanted()
        for wanted, kind, s, why in (
            (moved, Kind.MESSAGES, messages, Why.PLACE),
            (strange, Kind.POSITIONS, positions, _STRANGERS),
        ):
            chosen = (weigh(s) & why) != 0
            wanted.add(kind, s["run"][chosen], s["a"][chosen], s["b"][chosen])
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
            for run, c in by_runs(batches, _NEEDED[table]):
                for kind, x, y in self._found(table, run, c):
                    pairs = np.unique(np.stack([x, y]), axis=1)
                    same = np.ones(pairs.shape[1], dtype=np.int64)
                    columns = (same * kind, same * run, pairs[0], pairs[1])
                    yield pa.RecordBatch.from_arrays(list(map(pa.array, columns)), ["kind", "run", "x", "y"])

        return hunt

    def _found(self, table: str, run: int, c: Columns) -> Iterator[tuple[Kind, Ints, Ints]]:
        session, seq, offset = c["session"], c["seq"], c["offset"]
        place = place_of(c["topic"], c["told_partition" if table == "attempts" else "partition"])
        moved = self.moved.holds(run, Kind.MESSAGES, session, seq >> BITS) & (offset >= 0)
        yield Kind.POSITION, place[moved], offset[moved]
        if table == "attempts":
            return
        ours = (c["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)) == 0
        if table == "deliveries":
            strange = self.strange.holds(run, Kind.POSITIONS, place, offset >> BITS) & ours
            yield Kind.MESSAGE, session[strange], seq[strange]
            return
        passed = _in_ranges(run, place, offset, self.passed)
        yield Kind.POSITIONS, place[passed], offset[passed] >> BITS
        keyed = ours & (c["key"] >= 0) & (c["intended_partition"] < 0)
        mixed_up = keyed & _in_ranges(run, place, offset, self.keyed)
        if run in self.split:
            mixed_up |= keyed & _isin(place_of(c["topic"], c["key"]), self.split[run])
        yield Kind.MESSAGE, session[mixed_up], seq[mixed_up]
        for stretch in self.broken:
            if stretch["run"] == run:
                behind = (
                    (session == stretch["session"]) & (place == stretch["place"]) & (seq < stretch["before"])
                )
                behind &= (offset >= stretch["first"]) & (offset <= stretch["last"])
                # Who was ahead of them is needed too, or the closer look would find nobody to compare with.
                ahead = np.array([stretch["before"]])
                yield (
                    Kind.MESSAGES,
                    np.r_[session[behind], stretch["session"]],
                    np.r_[seq[behind], ahead] >> BITS,
                )


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


# --- the second pass ------------------------------------------------------------------------------


def _picked(source: Source, name: str, wanted: _Wanted) -> DataFrame:
    columns = [column for column in SCHEMAS[name].names if column != "run"]
    schema = spark_schema(name).add("by_message", "boolean").add("by_position", "boolean")
    return source.each({name: (columns, _pick(name, wanted))}, schema.toDDL())


def _pick(table: str, wanted: _Wanted) -> Work:
    needed = _NEEDED[table][:5]  # who it is and where it stands

    def pick(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows: dict[str, Any] = {"by_message": np.zeros(batch.num_rows, dtype=bool)}
            rows["by_position"] = rows["by_message"].copy()
            runs = batch.column("run").to_numpy()
            for run, c in by_runs([batch], needed):
                mine = runs == run
                place = place_of(c["topic"], c[needed[3]])
                rows["by_message"][mine] = wanted.holds(
                    run, Kind.MESSAGES, c["session"], c["seq"] >> BITS
                ) | wanted.holds(run, Kind.MESSAGE, c["session"], c["seq"])
                rows["by_position"][mine] = (c["offset"] >= 0) & (
                    wanted.holds(run, Kind.POSITIONS, place, c["offset"] >> BITS)
                    | wanted.holds(run, Kind.POSITION, place, c["offset"])
                )
            chosen = pa.array(rows["by_message"] | rows["by_position"])
            marked = [*batch.columns, *(pa.array(rows[name]) for name in ("by_message", "by_position"))]
            names = [*batch.schema.names, "by_message", "by_position"]
            yield pa.RecordBatch.from_arrays(marked, names).filter(chosen)

    return pick
