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

FEW_BLOCKS = 1 << 13  # of 64 messages or positions
AT_A_TIME = 2

_STRANGERS = Why.NOBODYS | Why.CONTENT | Why.PLACE
_MESSAGE = ["run", "session", "seq_block"]
_POSITION = ["run", "place", "offset_block"]
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
    overcommits: DataFrame  # run, topic, partition, reader, t, offset, given (null: nothing yet)

    def unpersist(self) -> None:
        for frame in self.either.values():
            frame.unpersist()


def choose(spark: SparkSession, tables: Mapping[str, DataFrame], doubts: Doubts) -> Chosen:
    """The rows that need a closer look."""
    screened = doubts.screened
    messages, positions = screened.doubtful(Space.MESSAGE), screened.doubtful(Space.POSITION)
    blocks = [_frame(spark, run=messages["run"], session=messages["a"], seq_block=messages["b"])]
    blocks += _blocks_of_keys(spark, tables["log"], screened.doubtful(Space.KEY))
    blocks += _blocks_of_breaks(spark, tables["log"], doubts.breaks)
    blocks += [
        rows.selectExpr("run", "session", _SEQ_BLOCK) for rows in _in(spark, tables["log"], doubts.crossed)
    ]
    places = [_frame(spark, run=positions["run"], place=positions["a"], offset_block=positions["b"])]
    unread = [Range(over.run, over.place, over.given, over.offset - 1) for over in doubts.overcommits]
    places += [
        rows.selectExpr("run", _PLACE, _OFFSET_BLOCK)
        for rows in _in(spark, tables["log"], [*doubts.jumped, *unread])
    ]
    # Who was delivered at a position where the log has nobody, or somebody else, is a doubtful message too.
    strangers = (weigh(positions) & _STRANGERS) != 0
    blocks += _blocks_of_strangers(
        spark, tables["deliveries"], {name: values[strangers] for name, values in positions.items()}
    )
    by_message = _fixed(spark, reduce(DataFrame.unionByName, blocks), _MESSAGE)
    places += [
        _placed(name, _semi(frame, by_message.frame, _MESSAGE, _SEQ_BLOCK)) for name, frame in _large(tables)
    ]
    by_position = _fixed(spark, reduce(DataFrame.unionByName, places), _POSITION)
    few = by_message.count + by_position.count <= FEW_BLOCKS
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="choose") as pool:
        steps = pool.submit(trails.steps, spark, tables["deliveries"], doubts)
        marked = {
            name: pool.submit(kept, spark, _marked(name, frame, by_message.frame, by_position.frame), few=few)
            for name, frame in _large(tables)
        }
    either = {name: future.result() for name, future in marked.items()}
    return Chosen(
        {name: frame.where("by_message") for name, frame in either.items()},
        {name: frame.where("by_position") for name, frame in either.items()},
        either,
        steps.result(),
        few,
        _overcommits(spark, doubts.overcommits),
    )


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


@dataclass(frozen=True)
class _Blocks:
    frame: DataFrame
    count: int


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


def _placed(name: str, frame: DataFrame) -> DataFrame:
    """The blocks of positions where these rows stand, or are said to stand."""
    place = _TOLD_PLACE if name == "attempts" else _PLACE
    return frame.where("offset IS NOT NULL").selectExpr("run", place, _OFFSET_BLOCK)


def _blocks_of_strangers(spark: SparkSession, deliveries: DataFrame, positions: Summary) -> list[DataFrame]:
    if not len(positions["a"]):
        return []
    places = _frame(spark, run=positions["run"], place=positions["a"], offset_block=positions["b"])
    rows = deliveries.where(OURS).selectExpr("run", "session", _PLACE, _OFFSET_BLOCK, _SEQ_BLOCK)
    return [rows.join(f.broadcast(places), on=_POSITION, how="left_semi").select(*_MESSAGE)]


def _blocks_of_keys(spark: SparkSession, log: DataFrame, keys: Summary) -> list[DataFrame]:
    if not len(keys["a"]):
        return []
    split = _frame(spark, run=keys["run"], keyed=keys["a"])
    found = log.where("intended_partition < 0").selectExpr(
        "run", "shiftleft(CAST(topic AS bigint), 32) | key AS keyed", "session", _SEQ_BLOCK
    )
    return [found.join(f.broadcast(split), on=["run", "keyed"], how="left_semi").select(*_MESSAGE)]


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


def _marked(name: str, frame: DataFrame, by_message: DataFrame, by_position: DataFrame) -> DataFrame:
    place = _TOLD_PLACE if name == "attempts" else _PLACE
    with_blocks = frame.selectExpr("*", _SEQ_BLOCK, place, _OFFSET_BLOCK)
    in_message = by_message.selectExpr("*", "true AS by_message")
    in_position = by_position.selectExpr("*", "true AS by_position")
    return (
        with_blocks.join(f.broadcast(in_message), on=_MESSAGE, how="left")
        .join(f.broadcast(in_position), on=_POSITION, how="left")
        .where("by_message OR by_position")
        .drop("seq_block", "place", "offset_block")
    )
