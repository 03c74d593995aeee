"""The closer look: from blocks in doubt to findings. Few rows are judged in the driver, many inside Spark tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from harness.contracts import Finder
from harness.reconcile.blocks import Facts, Space, Why
from harness.reconcile.find.findings import to_arrow
from harness.reconcile.find.missing import joined_gone
from harness.reconcile.find.rounds import (
    CRASHED,
    FINDINGS,
    GONE,
    HARMED,
    KEY_PLACES,
    KEYED,
    PASSED_OVER,
    UNJUDGED,
    Answers,
    Questions,
)
from harness.reconcile.find.shares import of_shares, with_shares
from harness.reconcile.find.sql import sql
from harness.reconcile.find.tables import Known, table_of
from harness.reconcile.pieces import Bag, Shares, Subject, unpacked
from harness.reconcile.seal import Sealed
from harness.reconcile.select.across_tasks import Doubts
from harness.reconcile.select.doubtful_steps import across_tasks
from harness.reconcile.select.narrow import narrow
from harness.reconcile.select.row_keys import Wanted
from harness.reconcile.select.select import Picker, found_already, related, visible_of, with_all_tables
from harness.reconcile.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW_BLOCKS = 1 << 13  # of 64 messages or positions: their rows are judged in the driver
ROWS_A_SHARE = 1 << 17  # messages and positions, about
STRETCH_BITS = 14  # of a session or a partition 2 ** 14 seqs or offsets are never divided
MOST_SHARES = 1 << 10


@dataclass
class Looked:
    """What the finders found."""

    findings: Iterable[pa.Table] = ()  # in pieces; can be gone through once
    crashed: dict[str, str] = field(default_factory=dict)  # finder -> why
    unjudged: list[dict[str, Any]] = field(
        default_factory=list
    )  # run, kind, n, first: owed messages nobody could judge


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
    wanted, sure = related(source, doubts)
    missing = bool(doubts.reasons()[Space.MESSAGE] & (Why.MISSING | Why.OPEN_TXN))
    questions = Questions(Known.of(sealed, small), finders, missing)
    if wanted.blocks <= FEW_BLOCKS:
        return _in_driver(source, doubts, facts, questions, wanted, sure)
    return _in_tasks(spark, source, doubts, facts, questions, wanted)


def _in_driver(
    source: Source, doubts: Doubts, facts: Sequence[Facts], questions: Questions, wanted: Wanted, sure: Wanted
) -> Looked:
    picker = Picker.of(wanted, doubts, facts)
    bags = unpacked(picker.pick(source).toArrow().to_batches())
    messages = with_all_tables(bags[Subject.MESSAGES])
    positions = with_all_tables(
        {**bags[Subject.POSITIONS], **bags[Subject.READINGS], **found_already(doubts)}
    )
    positions["steps"] = pa.concat_tables([positions["steps"], _steps_across(picker, bags[Subject.EDGES])])
    narrowed, still = narrow(messages, positions, doubts.screened, facts, sure)
    at_positions = questions.of_positions(still)
    of_messages = questions.of_messages(narrowed, at_positions[HARMED], at_positions[PASSED_OVER])
    answers = [at_positions, of_messages]
    if KEYED in of_messages:
        answers.append(questions.of_keys(of_messages[KEYED], of_messages[KEY_PLACES]))
    if GONE in of_messages:
        answers.append(_of_transactions(source, questions, of_messages[GONE]))
    crashed = _crashed(each[CRASHED] for each in answers)
    unjudged = _unjudged(of_messages[UNJUDGED]) if UNJUDGED in of_messages else []
    found = pl.concat([each[FINDINGS] for each in answers])
    return Looked([_without(to_arrow(found), crashed)], crashed, unjudged)


def _in_tasks(
    spark: SparkSession,
    source: Source,
    doubts: Doubts,
    facts: Sequence[Facts],
    questions: Questions,
    wanted: Wanted,
) -> Looked:
    from pyspark import StorageLevel

    at_least = 2 * spark.sparkContext.defaultParallelism
    shares = Shares(min(MOST_SHARES, max(at_least, 64 * wanted.blocks // ROWS_A_SHARE)), STRETCH_BITS)
    picker = Picker.of(wanted, doubts, facts, shares)
    picked = picker.pick(source).persist(StorageLevel.DISK_ONLY)
    edges = unpacked(picked.where(f"subject = '{Subject.EDGES}'").toArrow().to_batches())[Subject.EDGES]
    if "proofs" in edges:
        questions = replace(questions, known=questions.known.with_proofs(table_of(edges["proofs"])))
    here = {**found_already(doubts), "steps": _steps_across(picker, edges)}
    pieces = list(with_shares(here, shares))
    if pieces:
        picked = picked.unionAll(
            spark.createDataFrame(pa.Table.from_batches(pieces).combine_chunks(), picked.schema)
        )
    results = of_shares(picked, questions, shares)
    small = unpacked(results.where(f"name != '{FINDINGS}'").toArrow().to_batches())[Subject.RESULT]
    answers: list[Answers] = []
    if GONE in small:
        answers.append(_of_transactions(source, questions, joined_gone(table_of(small[GONE]))))
    crashed = _crashed([table_of(small[CRASHED]), *(each[CRASHED] for each in answers)])
    unjudged = _unjudged(table_of(small[UNJUDGED])) if UNJUDGED in small else []
    return Looked(_all_findings(results, answers, crashed), crashed, unjudged)


def _all_findings(
    results: DataFrame, answers: Sequence[Answers], crashed: Mapping[str, str]
) -> Iterator[pa.Table]:
    for each in answers:
        yield _without(to_arrow(each[FINDINGS]), crashed)
    for row in results.where(f"name = '{FINDINGS}'").select("rows").toLocalIterator():
        with pa.ipc.open_stream(row.rows) as stream:
            yield _without(stream.read_all(), crashed)


def _steps_across(picker: Picker, edges: Bag) -> pa.Table:
    if picker.jumped is None or "edges" not in edges:
        return with_all_tables({})["steps"]
    return across_tasks(edges["edges"], picker.jumped)


def _of_transactions(source: Source, questions: Questions, gone: pl.DataFrame) -> Answers:
    if not gone.height:
        return questions.of_transactions(
            gone, gone.select("run", "session", "txn").with_columns(there=pl.lit(0))
        )
    return questions.of_transactions(gone, table_of(visible_of(source, gone.to_arrow())))


def _crashed(tables: Iterable[pl.DataFrame]) -> dict[str, str]:
    return {row["finder"]: row["reason"] for table in tables for row in table.iter_rows(named=True)}


def _without(found: pa.Table, crashed: Mapping[str, str]) -> pa.Table:
    """A finder that crashed somewhere has not said everything: none of its findings counts."""
    if not crashed:
        return found
    return found.filter(
        pa.compute.invert(pa.compute.is_in(found["anomaly"], pa.array(list(crashed), pa.string())))
    )


def _unjudged(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """How many owed messages could not be judged, one entry a run and kind, with the first one's id."""
    first = rows.sort("session", "seq").group_by("run", "kind").agg(
        pl.len().alias("n"), sql("sender || '-' || seq").first().alias("first")
    )  # fmt: skip
    return first.to_dicts()
