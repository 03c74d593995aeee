"""The closer look: the rows of doubtful blocks, and only those, for the finders to compare one by one.

Finders ask two kinds of question: about a message (all rows that name it) and about a position (all rows that stand
there). So two sets of blocks are kept apart, and each derived table is made of the rows of its own set: a message is
only judged when all its rows are there, and so is a position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from harness.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile.blocks import BITS, Space, Summary, Why, weigh
from harness.reconcile.screen import Screened

# The payload is intact and of this run, so that its fields can be believed.
OURS = f"flags & {BAD_PAYLOAD | FOREIGN_RUN} = 0"

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

    def unpersist(self) -> None:
        for frame in self.either.values():
            frame.unpersist()


def stitched(runs: Summary) -> Summary:
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
            before[first:last], doubtful[first:last] = np.iinfo(np.int64).max, True
        else:
            highest = np.maximum.accumulate(s["m2"][first:last])
            before[first + 1 : last] = highest[:-1]
            doubtful[first + 1 : last] = s["m1"][first + 1 : last] < highest[:-1]
    s["m3"] = before
    return {name: values[doubtful] for name, values in s.items()}


def choose(spark: SparkSession, tables: Mapping[str, DataFrame], screened: Screened) -> Chosen | None:
    """The rows that need a closer look; None when every block is sound."""
    messages, positions = screened.doubtful(Space.MESSAGE), screened.doubtful(Space.POSITION)
    screened_why = weigh(positions)
    keys, breaks = screened.doubtful(Space.KEY), stitched(screened.space(Space.RUN_OF_ORDER))
    if not any(len(part["a"]) for part in (messages, positions, keys, breaks)):
        return None
    blocks = [_frame(spark, run=messages["run"], session=messages["a"], seq_block=messages["b"])]
    blocks += _blocks_of_keys(spark, tables["log"], keys) + _blocks_of_breaks(spark, tables["log"], breaks)
    places = [_frame(spark, run=positions["run"], place=positions["a"], offset_block=positions["b"])]
    # Who was delivered at a position where the log has nobody, or somebody else, is a doubtful message too.
    strangers = {name: values[(screened_why & _STRANGERS) != 0] for name, values in positions.items()}
    blocks += _blocks_of_strangers(spark, tables["deliveries"], strangers)
    by_message = _fixed(spark, reduce(DataFrame.unionByName, blocks), _MESSAGE)
    if by_message.count():
        places += [
            _placed(name, _semi(frame, by_message, _MESSAGE, _SEQ_BLOCK)) for name, frame in _large(tables)
        ]
    by_position = _fixed(spark, reduce(DataFrame.unionByName, places), _POSITION)
    either = {name: _marked(name, frame, by_message, by_position).persist() for name, frame in _large(tables)}
    return Chosen(
        {name: frame.where("by_message") for name, frame in either.items()},
        {name: frame.where("by_position") for name, frame in either.items()},
        either,
    )


def _large(tables: Mapping[str, DataFrame]) -> list[tuple[str, DataFrame]]:
    return [(name, tables[name]) for name in ("attempts", "log", "deliveries")]


def _frame(spark: SparkSession, **columns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> DataFrame:
    return spark.createDataFrame(
        pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    )


def _fixed(spark: SparkSession, frame: DataFrame, columns: list[str]) -> DataFrame:
    """Computed now: it is small, it is joined with every table, and its plan would be carried along each time."""
    table = frame.select(*columns).distinct().toArrow()
    return f.broadcast(spark.createDataFrame(table)) if table.num_rows else spark.createDataFrame(
        [], ", ".join(f"{name} bigint" for name in columns)
    )  # fmt: skip


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
