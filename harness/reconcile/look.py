"""The closer look: the rows of doubtful blocks, and only those, for the finders to compare one by one.

Finders ask two kinds of question: about a message (all rows that name it) and about a position (all rows that stand
there). So two sets of blocks are kept apart, and each derived table is made of the rows of its own set: a message is
only judged when all its rows are there, and so is a position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from harness.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile import trails
from harness.reconcile.blocks import BITS, Space, Summary, Why, weigh
from harness.reconcile.stitch import Doubts, Overcommit, Range

# The payload is intact and of this run, so that its fields can be believed.
OURS = f"flags & {BAD_PAYLOAD | FOREIGN_RUN} = 0"

FEW_BLOCKS, TINY_BLOCKS = 1 << 13, 1 << 9  # of 64 messages or positions
AT_A_TIME = 2

_STRANGERS = Why.NOBODYS | Why.CONTENT | Why.PLACE
_ONE = ["run", "session", "seq"]
_MESSAGE = ["run", "session", "seq_block"]
_POSITION = ["run", "place", "offset_block"]
_SPOT = ["run", "place", "offset"]
_SEQ_BLOCK = f"shiftright(seq, {BITS}) AS seq_block"
_OFFSET_BLOCK = f"shiftright(offset, {BITS}) AS offset_block"
_PLACE = "shiftleft(CAST(topic AS bigint), 32) | partition AS place"
_TOLD_PLACE = "shiftleft(CAST(topic AS bigint), 32) | told_partition AS place"


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


def choose(spark: SparkSession, tables: Mapping[str, DataFrame], doubts: Doubts) -> Chosen:
    """The rows that need a closer look.

    Whole blocks where screening knows no better; one by one where it does, since the others of their blocks would
    only be carried along.
    """
    screened, log = doubts.screened, tables["log"]
    messages, positions = screened.doubtful(Space.MESSAGE), screened.doubtful(Space.POSITION)
    blocks = [_frame(spark, run=messages["run"], session=messages["a"], seq_block=messages["b"])]
    blocks += _blocks_of_breaks(spark, log, doubts.breaks)
    unread = [Range(over.run, over.place, over.given, over.offset - 1) for over in doubts.overcommits]
    places = [_frame(spark, run=positions["run"], place=positions["a"], offset_block=positions["b"])]
    places += [
        rows.selectExpr("run", _PLACE, _OFFSET_BLOCK) for rows in _in(spark, log, [*doubts.jumped, *unread])
    ]
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="choose") as pool:
        steps = pool.submit(trails.steps, spark, tables["deliveries"], doubts)
        by_message = pool.submit(_fixed, spark, reduce(DataFrame.unionByName, blocks), _MESSAGE)
        by_position = pool.submit(_fixed, spark, reduce(DataFrame.unionByName, places), _POSITION)
        single = pool.submit(_fixed, spark, _single_messages(spark, tables, doubts), _ONE)
        spots = pool.submit(_fixed, spark, _contested_spots(spark, tables, messages), _SPOT)
    found = _Found(by_message.result(), single.result(), by_position.result(), spots.result())
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="choose") as pool:
        marked = {
            name: pool.submit(kept, spark, _marked(name, frame, found), few=found.blocks <= FEW_BLOCKS)
            for name, frame in _large(tables)
        }
    either = {name: future.result() for name, future in marked.items()}
    return Chosen(
        {name: frame.where("by_message") for name, frame in either.items()},
        {name: frame.where("by_position") for name, frame in either.items()},
        either,
        steps.result(),
        found.blocks <= FEW_BLOCKS,
        found.blocks <= TINY_BLOCKS,
        _overcommits(spark, doubts.overcommits),
    )


@dataclass(frozen=True)
class _Blocks:
    frame: DataFrame
    count: int


@dataclass(frozen=True)
class _Found:
    """What is to be looked at: messages by block and one by one, positions likewise."""

    messages: _Blocks
    single: _Blocks
    positions: _Blocks
    spots: _Blocks

    @property
    def blocks(self) -> int:
        return self.messages.count + self.positions.count + (self.single.count + self.spots.count >> BITS)


def _in(spark: SparkSession, log: DataFrame, ranges: Sequence[Range]) -> list[DataFrame]:
    """Rows of the log in one of the ranges, if there are any ranges."""
    if not ranges:
        return []
    wide = _frame(
        spark, **{name: np.array([getattr(r, name) for r in ranges], np.int64) for name in ("run", "place", "first", "last")}
    )  # fmt: skip
    rows = log.selectExpr("*", _PLACE).join(f.broadcast(wide), on=["run", "place"], how="inner")
    return [rows.where("offset BETWEEN first AND last").drop("place")]


def _overcommits(spark: SparkSession, found: Sequence[Overcommit]) -> DataFrame:
    columns = ("run", "place", "reader", "t", "offset", "given")
    frame = _frame(spark, **{name: np.array([getattr(o, name) for o in found], np.int64) for name in columns})
    return frame.selectExpr(
        "run", "CAST(shiftright(place, 32) AS int) AS topic", "CAST(place & 4294967295 AS int) AS partition",
        "CAST(reader AS int) AS reader", "t", "offset", "nullif(given, 0) AS given",
    )  # fmt: skip


def _large(tables: Mapping[str, DataFrame]) -> list[tuple[str, DataFrame]]:
    return [(name, tables[name]) for name in ("attempts", "log", "deliveries")]


def _frame(spark: SparkSession, **columns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> DataFrame:
    return spark.createDataFrame(
        pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    )


def _fixed(spark: SparkSession, frame: DataFrame, columns: list[str]) -> _Blocks:
    """Computed now: it is small, it is joined with every table, and its plan would be carried along each time."""
    table = frame.select(*columns).distinct().toArrow()
    return _Blocks(f.broadcast(local(spark, table)), table.num_rows)


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


def _semi(frame: DataFrame, blocks: DataFrame, on: list[str], *columns: str) -> DataFrame:
    return frame.selectExpr("*", *columns).join(blocks, on=on, how="left_semi")


def _contested_spots(spark: SparkSession, tables: Mapping[str, DataFrame], messages: Summary) -> DataFrame:
    """Positions where messages stand, or are said to stand, that are not where their acks say."""
    elsewhere = {name: values[(weigh(messages) & Why.PLACE) != 0] for name, values in messages.items()}
    none = np.zeros(0, dtype=np.int64)
    nowhere = _frame(spark, run=none, place=none, offset=none)
    if not len(elsewhere["a"]):
        return nowhere
    blocks = f.broadcast(
        _frame(spark, run=elsewhere["run"], session=elsewhere["a"], seq_block=elsewhere["b"])
    )
    spots = [
        _semi(frame, blocks, _MESSAGE, _SEQ_BLOCK)
        .where("offset IS NOT NULL")
        .selectExpr("run", _TOLD_PLACE if name == "attempts" else _PLACE, "offset")
        for name, frame in _large(tables)
    ]
    return reduce(DataFrame.unionByName, spots)


def _single_messages(spark: SparkSession, tables: Mapping[str, DataFrame], doubts: Doubts) -> DataFrame:
    """Messages whose keys stand in several partitions or may be out of order, and strangers.

    They are judged as messages only: neither the other 63 of their blocks nor their neighbours in the log are needed.
    """
    keyed = tables["log"].where(f"{OURS} AND key >= 0 AND intended_partition < 0")
    found = [rows.select(*_ONE) for rows in _in(spark, keyed, doubts.crossed)]
    if len(doubts.split["a"]):
        split = _frame(spark, run=doubts.split["run"], keyed=doubts.split["a"])
        by_key = keyed.selectExpr(*_ONE, "shiftleft(CAST(topic AS bigint), 32) | key AS keyed")
        found.append(by_key.join(f.broadcast(split), on=["run", "keyed"], how="left_semi").select(*_ONE))
    # Who was delivered at a position where the log has nobody, or somebody else, is a doubtful message too.
    positions = doubts.screened.doubtful(Space.POSITION)
    strange = (weigh(positions) & _STRANGERS) != 0
    if strange.any():
        places = _frame(
            spark,
            run=positions["run"][strange],
            place=positions["a"][strange],
            offset_block=positions["b"][strange],
        )
        rows = tables["deliveries"].where(OURS).selectExpr(*_ONE, _PLACE, _OFFSET_BLOCK)
        found.append(rows.join(f.broadcast(places), on=_POSITION, how="left_semi").select(*_ONE))
    none = np.zeros(0, dtype=np.int64)
    return reduce(DataFrame.unionByName, found, _frame(spark, run=none, session=none, seq=none))


def _blocks_of_breaks(spark: SparkSession, log: DataFrame, breaks: Summary) -> list[DataFrame]:
    if not len(breaks["a"]):
        return []
    stretches = _frame(
        spark, run=breaks["run"], session=breaks["n1"] // breaks["n0"], place=breaks["n2"] // breaks["n0"],
        first=breaks["b"], last=breaks["m0"], before=breaks["m3"],
    )  # fmt: skip
    rows = log.selectExpr("run", "session", "seq", "offset", _PLACE, _SEQ_BLOCK)
    behind = rows.join(f.broadcast(stretches), on=["run", "session", "place"], how="inner").where(
        "offset BETWEEN first AND last AND seq < before"
    )
    # Who was ahead of them is needed too, or the closer look would find nobody to compare with.
    ahead = stretches.selectExpr("run", "session", f"shiftright(before, {BITS}) AS seq_block")
    return [behind.select(*_MESSAGE), ahead]


def _marked(name: str, frame: DataFrame, found: _Found) -> DataFrame:
    place = _TOLD_PLACE if name == "attempts" else _PLACE
    marked = frame.selectExpr("*", _SEQ_BLOCK, place, _OFFSET_BLOCK)
    marks = (
        ("in_block", found.messages, _MESSAGE), ("single", found.single, _ONE),
        ("at_block", found.positions, _POSITION), ("spot", found.spots, _SPOT),
    )  # fmt: skip
    for mark, blocks, on in marks:
        if blocks.count:
            marked = marked.join(
                f.broadcast(blocks.frame.selectExpr("*", f"true AS {mark}")), on=on, how="left"
            )
        else:
            marked = marked.withColumn(mark, f.lit(None).cast("boolean"))
    return marked.where("in_block OR single OR at_block OR spot").selectExpr(
        *frame.columns,
        "coalesce(in_block OR single, false) AS by_message",
        "coalesce(at_block OR spot, false) AS by_position",
    )
