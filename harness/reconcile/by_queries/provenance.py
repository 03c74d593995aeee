"""Inputs of pipelines and their effects, where screening saw that they do not go together.

`inputs`: run, topic, partition, offset, session, seq of an input that its group has passed, and how many `effects` it has to
have. `effects`: the table of that name, run, who made what of whom. Of the doubtful blocks of inputs, all rows of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from harness.reconcile.blocks import BITS, Facts, Space, place_of
from harness.reconcile.schema import EFFECTS, SCHEMAS, spark_schema
from harness.reconcile.screen import by_runs
from harness.reconcile.select.across_tasks import Doubts
from harness.reconcile.select.related_rows import ours
from harness.reconcile.select.row_keys import Kind, Wanted
from harness.reconcile.source import Source, Work
from harness.transform import INPUT, Transform

ORIGIN = ["run", "origin_topic", "origin_partition", "origin_offset", "origin_session", "origin_seq"]
_EFFECT_COLUMNS = tuple(name for name in SCHEMAS[EFFECTS].names if name != "run")
_INPUT = ("topic", "partition", "offset", "session", "seq")
_INPUTS = ", ".join(f"{name} bigint" for name in ("run", *_INPUT, "effects"))


def rows_in_doubt(
    spark: SparkSession, source: Source, doubts: Doubts, facts: Sequence[Facts]
) -> tuple[DataFrame, DataFrame]:
    """Inputs and effects."""
    wanted = Wanted()
    s = doubts.screened.doubtful(Space.EFFECT)
    if not len(s["run"]):
        return spark.createDataFrame([], _INPUTS), spark.createDataFrame([], spark_schema(EFFECTS))
    wanted.add(Kind.POSITIONS, s["run"], s["a"], s["b"])
    transforms = {fact.run: fact.transform for fact in facts if fact.transform is not None}
    inputs = source.each({"log": ((*_INPUT, "passed", "flags"), _inputs(wanted, transforms))}, _INPUTS)
    effects = source.each({EFFECTS: (_EFFECT_COLUMNS, _effects(wanted))}, spark_schema(EFFECTS).toDDL())
    return inputs, effects


def _inputs(wanted: Wanted, transforms: Mapping[int, Transform]) -> Work:
    def pick(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for run, c in by_runs(batches, (*_INPUT, "passed", "flags")):
            place = place_of(c["topic"], c["partition"])
            mine = c["passed"] & (c["topic"] == INPUT) & ours(c)
            mine &= wanted.holds(run, Kind.POSITIONS, place, c["offset"] >> BITS)
            if run not in transforms or not mine.any():
                continue
            picked: dict[str, Any] = {name: c[name][mine] for name in _INPUT}
            picked["effects"] = transforms[run].effects(picked["session"], picked["seq"])
            runs = np.full(int(mine.sum()), run, dtype=np.int64)
            yield pa.RecordBatch.from_pydict({"run": runs, **picked})

    return pick


def _effects(wanted: Wanted) -> Work:
    def pick(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for run, c in by_runs(batches, _EFFECT_COLUMNS):
            place = place_of(c["origin_topic"], c["origin_partition"])
            mine = wanted.holds(run, Kind.POSITIONS, place, c["origin_offset"] >> BITS)
            runs = np.full(int(mine.sum()), run, dtype=np.int64)
            yield pa.RecordBatch.from_pydict(
                {"run": runs, **{name: c[name][mine] for name in _EFFECT_COLUMNS}}
            )

    return pick
