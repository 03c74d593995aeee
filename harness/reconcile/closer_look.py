"""The closer look: from blocks in doubt to findings. Few rows are judged in the driver, many inside Spark tasks.

Both ask the same rounds (harness.reconcile.find.rounds): each takes the rows of its subject and returns findings, and rows
for later rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from harness.contracts import Finder
from harness.reconcile.find.findings import to_arrow
from harness.reconcile.find.known import Known, table_of
from harness.reconcile.find.rounds import (
    CRASHED,
    FINDINGS,
    PICKED_FOR,
    ROUNDS,
    UNJUDGED,
    Rounds,
    packed,
)
from harness.reconcile.screen.facts import Facts
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.select.doubts import Doubts
from harness.reconcile.select.pick import Picker, visible
from harness.reconcile.select.related import related
from harness.reconcile.spark.pieces import ALL_TOGETHER, PIECE, Bag, Shares, Subject, unpacked
from harness.reconcile.spark.sizes import USUAL, Sizes
from harness.reconcile.spark.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_A_SHARE = 1 << 17  # messages and positions, about
MOST_SHARES = 1 << 10
SHARES_AT_ONCE = 4  # their findings come to the driver together


@dataclass
class Looked:
    """The results of the closer look."""

    findings: Iterable[pa.Table] = ()  # in pieces; can be iterated once
    crashed: dict[str, str] = field(default_factory=dict)  # finder -> why
    # run, kind, n, first: owed messages without a judgement
    unjudged: list[dict[str, Any]] = field(default_factory=list)


def look(
    spark: SparkSession,
    source: Source,
    small: Mapping[str, pa.Table],
    sealed: Sequence[Sealed],
    facts: Sequence[Facts],
    doubts: Doubts,
    finders: Sequence[Finder],
    sizes: Sizes = USUAL,
) -> Looked:
    """Find what belongs to the blocks in doubt, pick its rows, and ask the finders about them."""
    source = source.of(doubts.runs)
    wanted = related(source, doubts)
    few = wanted.blocks <= sizes.judged_in_driver
    shares = ALL_TOGETHER if few else _shares_for(wanted.blocks, spark, sizes)
    picker = Picker.of(wanted, doubts, facts, shares)

    def prepared(first: Bag) -> tuple[Rounds, list[pa.RecordBatch]]:
        """Return the rounds to ask, and the pieces with what the driver itself found."""
        rounds = Rounds(Known.of(sealed, small, first.get("proven")), finders)
        return rounds, list(picker.found_here(doubts, first.get("edges")))

    if few:
        pieces = picker.pick(source).toArrow().to_batches()
        rounds, here = prepared(unpacked(pieces, Subject.FIRST))
        return _in_driver(source, rounds, [*pieces, *here])
    picked = _on_disk(picker.pick(source))
    first = picked.where(f"subject = '{Subject.FIRST}'").toArrow().to_batches()
    rounds, here = prepared(unpacked(first, Subject.FIRST))
    if here:
        table = pa.Table.from_batches(here).combine_chunks()
        picked = picked.unionAll(spark.createDataFrame(table, picked.schema))
    return _in_tasks(source, rounds, picked, shares)


def _shares_for(blocks: int, spark: SparkSession, sizes: Sizes) -> Shares:
    at_least = 2 * spark.sparkContext.defaultParallelism
    return Shares(min(MOST_SHARES, max(at_least, 64 * blocks // ROWS_A_SHARE)), sizes.stretch_bits)


def _in_driver(source: Source, rounds: Rounds, pieces: Sequence[pa.RecordBatch]) -> Looked:
    bags: dict[Subject, dict[str, pa.Table]] = {subject: {} for subject in Subject}
    bags |= {subject: unpacked(pieces, subject) for subject in PICKED_FOR}
    results: dict[str, list[pl.DataFrame]] = {FINDINGS: [], CRASHED: [], UNJUDGED: []}
    for subject in rounds.needed:
        if subject is Subject.TRANSACTIONS and "gone" in bags[subject]:
            counted = visible(source, bags[subject]["gone"]).toArrow().to_batches()
            bags[subject] |= unpacked(counted, subject)
        if not bags[subject]:
            continue
        for (later, name), rows in rounds.ask(subject, bags[subject]).items():
            if later is Subject.RESULT:
                results[name].append(rows)
            elif rows.height:
                bags[later][name] = rows.to_arrow()
    crashed = _crashed(results[CRASHED])
    findings = [_without(to_arrow(found), crashed) for found in results[FINDINGS]]
    return Looked(findings, crashed, _unjudged(results[UNJUDGED]))


def _in_tasks(source: Source, rounds: Rounds, picked: DataFrame, shares: Shares) -> Looked:
    def judging(subject: Subject) -> Callable[[pa.Table], pa.Table]:
        def judge(share: pa.Table) -> pa.Table:
            answers = rounds.ask(subject, unpacked(share.to_batches(), subject))
            return pa.Table.from_batches(list(packed(answers, shares)), schema=share.schema)

        return judge

    answered: dict[Subject, DataFrame] = {}
    for subject in rounds.needed:
        rows = [picked] if subject in PICKED_FOR else []
        rows += [answered[earlier] for earlier in ROUNDS[subject]]
        if subject is Subject.TRANSACTIONS:
            rows.append(visible(source, None, shares))
        mine = _together(rows).where(f"subject = '{subject}'")
        # As many tasks as shares: otherwise Spark joins small shares, whose answers may be large.
        mine = mine.repartition(shares.count, "share")
        answered[subject] = _on_disk(mine.groupBy("share").applyInArrow(judging(subject), PIECE))
    results = _together(list(answered.values())).where(f"subject = '{Subject.RESULT}'")
    small = unpacked(results.where(f"name != '{FINDINGS}'").toArrow().to_batches(), Subject.RESULT)
    crashed = _crashed([table_of(small[CRASHED])] if CRASHED in small else [])
    unjudged = _unjudged([table_of(small[UNJUDGED])] if UNJUDGED in small else [])
    found = results.where(f"name = '{FINDINGS}'").coalesce(max(1, shares.count // SHARES_AT_ONCE))
    return Looked(_findings(found, crashed), crashed, unjudged)


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionAll(other), frames)


def _on_disk(frame: DataFrame) -> DataFrame:
    """Compute the frame now and keep it on disk, because it may be large and is read several times.

    Spark's cache of tables would keep ten thousand pieces at a time in memory.
    """
    from pyspark import StorageLevel

    return frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def _findings(found: DataFrame, crashed: Mapping[str, str]) -> Iterator[pa.Table]:
    for row in found.select("rows").toLocalIterator():
        with pa.ipc.open_stream(row.rows) as stream:
            yield _without(stream.read_all(), crashed)


def _crashed(tables: Iterable[pl.DataFrame]) -> dict[str, str]:
    return {row["finder"]: row["reason"] for table in tables for row in table.iter_rows(named=True)}


def _without(found: pa.Table, crashed: Mapping[str, str]) -> pa.Table:
    """Drop the findings of finders that crashed in any share: they are not complete."""
    if not crashed:
        return found
    return found.filter(pc.invert(pc.is_in(found["anomaly"], pa.array(list(crashed), pa.string()))))


def _unjudged(tables: Sequence[pl.DataFrame]) -> list[dict[str, Any]]:
    """Return one entry for each run and kind: run, kind, n, and the id of the first message."""
    if not tables:
        return []
    together = pl.concat(tables).sort("session", "seq").group_by("run", "kind").agg(
        pl.col("n").sum(), pl.format("{}-{}", "sender", "seq").first().alias("first")
    )  # fmt: skip
    return together.to_dicts()
