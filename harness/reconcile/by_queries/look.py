"""The closer look: the rows that screening could not call sound, and only those, for the finders to compare one by one.

Finders ask two kinds of question: about a message (all rows that name it) and about a position (all rows that stand
there). So each chosen row says for which of them it was chosen, and each derived table is made of the rows of its own
kind: a message is only judged when all its rows are there, and so is a position.

Two passes over the tables, by kernels like those of screening. The first (harness.reconcile.select.related_rows) finds what else belongs
to what is in doubt; the second (`_pick`) picks the rows. Few rows are then sifted (harness.reconcile.by_queries.narrow).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from harness.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile.blocks import BITS, Facts, Space
from harness.reconcile.by_queries import provenance, trails
from harness.reconcile.by_queries.narrow import sift
from harness.reconcile.by_queries.rows_here import local
from harness.reconcile.owners import Shared
from harness.reconcile.schema import LARGE, SCHEMAS, spark_schema
from harness.reconcile.screen import arrays_of, by_runs
from harness.reconcile.select.across_tasks import Doubts, Overcommit
from harness.reconcile.select.related_rows import HUNTED, NEEDED, Hunt, claimed_place
from harness.reconcile.select.row_keys import Kind, Wanted
from harness.reconcile.source import Source, Work

# The payload is intact and of this run, so that its fields can be believed.
OURS = f"flags & {BAD_PAYLOAD | FOREIGN_RUN} = 0"

FEW_BLOCKS = 1 << 13  # of 64 messages or positions
TINY_ROWS = 30_000
AT_A_TIME = 2
PARTITION = ["run", "topic", "partition"]
_MARKS = ["by_message", "by_position"]


@dataclass(frozen=True)
class Chosen:
    """Rows of the three large tables: those of doubtful messages, and those at doubtful positions."""

    by_message: Mapping[str, DataFrame]
    by_position: Mapping[str, DataFrame]
    either: Mapping[str, DataFrame]
    steps: DataFrame  # of readers, as harness.reconcile.by_queries.trails gives them
    few: bool  # so few rows that they are kept as they are, and not as a plan with a cache
    tiny: bool  # so few that compiling a query takes longer than running it as it is
    overcommits: DataFrame  # run, topic, partition, reader, t, offset, given (null: nothing yet)
    inputs: DataFrame  # of pipelines, as harness.reconcile.by_queries.provenance gives them
    effects: DataFrame
    shared: DataFrame  # as in harness.reconcile.owners

    def unpersist(self) -> None:
        for frame in self.either.values():
            frame.unpersist()


def choose(spark: SparkSession, source: Source, doubts: Doubts, facts: Sequence[Facts]) -> Chosen:
    """The rows that need a closer look: whole blocks where screening knows no better; one by one where it does."""
    source = source.of(doubts.runs)
    wanted, sure = _doubtful_blocks(doubts), Wanted()
    hunt = Hunt.of(doubts)
    if hunt:
        found = arrays_of(source.each({name: (NEEDED[name], hunt.work(name)) for name in LARGE}, HUNTED))
        for kind in Kind:
            mine = found["kind"] == kind
            wanted.add(kind, *(found[name][mine] for name in ("run", "x", "y")))
            certain = mine & (found["sure"] == 1)
            sure.add(kind, *(found[name][certain] for name in ("run", "x", "y")))
    few = wanted.blocks <= FEW_BLOCKS
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="choose") as pool:
        steps = pool.submit(trails.steps, spark, source, doubts)
        frames = {name: _picked(source, name, wanted) for name in LARGE}
        if few:
            picked = dict(zip(LARGE, pool.map(DataFrame.toArrow, frames.values()), strict=True))
    tiny = False
    if few:
        sifted = sift(picked, doubts.screened, facts, sure)
        left = {name: _narrowed(name, table, sifted) for name, table in picked.items()}
        tiny = sum(table.num_rows for table in left.values()) <= TINY_ROWS
        either = {name: local(spark, table) for name, table in left.items()}
    else:
        either = {name: frame.persist() for name, frame in frames.items()}
    return Chosen(
        {name: frame.where("by_message") for name, frame in either.items()},
        {name: frame.where("by_position") for name, frame in either.items()},
        either,
        steps.result(),
        few,
        tiny,
        _overcommits(spark, doubts.overcommits),
        *provenance.rows_in_doubt(spark, source, doubts, facts),
        _shared(spark, doubts.shared),
    )


def kept(spark: SparkSession, frame: DataFrame, *, few: bool) -> DataFrame:
    """The rows of a frame for many queries: few as a table of their own, which plans like nothing; else in the cache."""
    return local(spark, frame.toArrow()) if few else frame.persist()


def _overcommits(spark: SparkSession, found: Sequence[Overcommit]) -> DataFrame:
    return _at_places(spark, found, Overcommit).selectExpr(
        *PARTITION, "CAST(reader AS int) AS reader", "t", "offset", "nullif(given, 0) AS given"
    )


def _shared(spark: SparkSession, found: Sequence[Shared]) -> DataFrame:
    return _at_places(spark, found, Shared).selectExpr(*PARTITION, "first", "second", "t", "until")


def _at_places(spark: SparkSession, found: Sequence[Any], kind: type) -> DataFrame:
    """What was found on the driver, with topic and partition for the place."""
    names = [field.name for field in fields(kind)]
    columns = {name: pa.array([getattr(one, name) for one in found], pa.int64()) for name in names}
    return local(spark, pa.table(columns)).selectExpr(
        "*", "CAST(shiftright(place, 32) AS int) AS topic", "CAST(place & 4294967295 AS int) AS partition"
    )


def _doubtful_blocks(doubts: Doubts) -> Wanted:
    wanted = Wanted()
    for kind, space in ((Kind.MESSAGES, Space.MESSAGE), (Kind.POSITIONS, Space.POSITION)):
        s = doubts.screened.doubtful(space)
        wanted.add(kind, s["run"], s["a"], s["b"])
    return wanted


# --- picking ------------------------------------------------------------------------------


def _picked(source: Source, name: str, wanted: Wanted) -> DataFrame:
    columns = [column for column in SCHEMAS[name].names if column != "run"]
    schema = spark_schema(name).add("by_message", "boolean").add("by_position", "boolean")
    return source.each({name: (columns, _pick(name, wanted))}, schema.toDDL())


def _narrowed(name: str, table: pa.Table, wanted: Wanted) -> pa.Table:
    """Of rows that were picked, those that are still wanted."""
    batches = table.drop_columns(_MARKS).to_batches()
    return pa.Table.from_batches(_pick(name, wanted)(batches), schema=table.schema)


def _pick(table: str, wanted: Wanted) -> Work:
    needed = NEEDED[table][:5]  # who it is and where it stands

    def pick(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows: dict[str, Any] = {mark: np.zeros(batch.num_rows, dtype=bool) for mark in _MARKS}
            alone = np.zeros(batch.num_rows, dtype=bool)
            runs = batch.column("run").to_numpy()
            for run, c in by_runs([batch], needed):
                mine = runs == run
                place = claimed_place(table, c)
                rows["by_message"][mine] = wanted.holds(
                    run, Kind.MESSAGES, c["session"], c["seq"] >> BITS
                ) | wanted.holds(run, Kind.MESSAGE, c["session"], c["seq"])
                rows["by_position"][mine] = (c["offset"] >= 0) & (
                    wanted.holds(run, Kind.POSITIONS, place, c["offset"] >> BITS)
                    | wanted.holds(run, Kind.POSITION, place, c["offset"])
                )
                if table == "log":
                    alone[mine] = wanted.holds(run, Kind.RECORDS, place, c["offset"] >> BITS)
            chosen = pa.array(rows["by_message"] | rows["by_position"] | alone)
            marked = [*batch.columns, *(pa.array(rows[mark]) for mark in _MARKS)]
            names = [*batch.schema.names, *_MARKS]
            yield pa.RecordBatch.from_arrays(marked, names).filter(chosen)

    return pick
