"""The closer look: from blocks in doubt to findings. Few rows are judged in the driver, many inside Spark tasks.

Both go through the same rounds: each takes the rows of its subject and returns findings and rows for later rounds.
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
from harness.reconcile.find.rounds import CRASHED, FINDINGS, UNJUDGED, FinderQuestions
from harness.reconcile.find.shares import packed
from harness.reconcile.screen.spaces import Space, Why
from harness.reconcile.screen.summaries import Facts
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.select.across_tasks import Doubts
from harness.reconcile.select.select import Picker, related, visible
from harness.reconcile.spark.pieces import FOR_LATER, PICKED_FOR, PIECE, Shares, Subject, unpacked
from harness.reconcile.spark.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW_BLOCKS = 1 << 13  # of 64 messages or positions: their rows are judged in the driver
ROWS_A_SHARE = 1 << 17  # messages and positions, about
STRETCH_BITS = 14  # 2 ** 14 neighbouring messages or positions are in one share
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
) -> Looked:
    source = source.of(doubts.runs)
    wanted = related(source, doubts)
    missing = bool(doubts.reasons()[Space.MESSAGE] & (Why.MISSING | Why.OPEN_TXN))

    def asked(first: Mapping[str, pa.Table]) -> FinderQuestions:
        return FinderQuestions(Known.of(sealed, small, first.get("proven")), finders, missing)

    if wanted.blocks <= FEW_BLOCKS:
        picker = Picker.of(wanted, doubts, facts)
        pieces = picker.pick(source).toArrow().to_batches()
        first = unpacked(pieces)[Subject.FIRST]
        pieces += picker.found_here(doubts, first.get("edges"))
        return _in_driver(source, asked(first), pieces)
    at_least = 2 * spark.sparkContext.defaultParallelism
    count = min(MOST_SHARES, max(at_least, 64 * wanted.blocks // ROWS_A_SHARE))
    shares = Shares(count, STRETCH_BITS)
    picker = Picker.of(wanted, doubts, facts, shares)
    picked = _on_disk(picker.pick(source))
    first = unpacked(picked.where(f"subject = '{Subject.FIRST}'").toArrow().to_batches())[Subject.FIRST]
    here = list(picker.found_here(doubts, first.get("edges")))
    if here:
        picked = picked.unionAll(
            spark.createDataFrame(pa.Table.from_batches(here).combine_chunks(), picked.schema)
        )
    return _in_tasks(source, asked(first), picked, shares)


def _in_driver(source: Source, questions: FinderQuestions, pieces: Sequence[pa.RecordBatch]) -> Looked:
    bags = unpacked(pieces)
    answers = []
    for subject in questions.rounds:
        if subject is Subject.TRANSACTIONS and "gone" in bags[subject]:
            counted = visible(source, bags[subject]["gone"]).toArrow().to_batches()
            bags[subject] |= unpacked(counted)[subject]
        if not bags[subject]:
            continue
        answer = questions.ask(subject, bags[subject])
        answers.append(answer.results)
        for (later, name), rows in answer.onward.items():
            if rows.height:
                bags[later][name] = rows.to_arrow()
    tables = {
        name: [each[name] for each in answers if name in each] for name in (FINDINGS, CRASHED, UNJUDGED)
    }
    crashed = _crashed(tables[CRASHED])
    findings = [_without(to_arrow(found), crashed) for found in tables[FINDINGS]]
    return Looked(findings, crashed, _unjudged(tables[UNJUDGED]))


def _in_tasks(source: Source, questions: FinderQuestions, picked: DataFrame, shares: Shares) -> Looked:
    def judging(subject: Subject) -> Callable[[pa.Table], pa.Table]:
        def judge(share: pa.Table) -> pa.Table:
            answers = questions.ask(subject, unpacked(share.to_batches())[subject])
            return pa.Table.from_batches(list(packed(answers, shares)), schema=share.schema)

        return judge

    rows_for = {subject: [picked] for subject in PICKED_FOR}
    answered = []
    for subject in questions.rounds:
        if subject is Subject.TRANSACTIONS:
            rows_for[subject].append(visible(source, None, shares))
        mine = _together(rows_for[subject]).where(f"subject = '{subject}'")
        # As many tasks as shares: otherwise Spark joins small shares, whose answers may be large.
        mine = mine.repartition(shares.count, "share")
        answers = _on_disk(mine.groupBy("share").applyInArrow(judging(subject), PIECE))
        answered.append(answers)
        for later in FOR_LATER.get(subject, ()):
            rows_for.setdefault(later, []).append(answers)
    results = _together(answered).where(f"subject = '{Subject.RESULT}'")
    small = unpacked(results.where(f"name != '{FINDINGS}'").toArrow().to_batches())[Subject.RESULT]
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
