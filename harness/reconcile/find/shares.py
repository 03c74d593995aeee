"""Many rows in doubt: the same rounds inside Spark tasks, share by share.

A share holds all rows of some messages, or of some positions, so that every question about one of them can be asked of
it alone. Questions that need more of a session or partition (order, steps, commits) have rounds of their own, with few
columns. What a round needs of an earlier one travels as pieces too, to the share that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from harness.reconcile.blocks import Ints, mixed, place_of
from harness.reconcile.find.findings import to_arrow
from harness.reconcile.find.rounds import (
    CRASHED,
    FINDINGS,
    HARMED,
    KEY_PLACES,
    KEYED,
    PASSED_OVER,
    PLACED,
    Answers,
    Questions,
)
from harness.reconcile.find.tables import table_of
from harness.reconcile.pieces import PIECE, Bag, Shares, Subject, piece, pieces, unpacked
from harness.reconcile.select.select import with_all_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NO_SESSION = -1  # a record that cannot say which message it is
ROWS_A_PIECE = 1 << 15  # of a result: the driver and the JVM hold one piece at a time


def of_shares(picked: DataFrame, questions: Questions, shares: Shares) -> DataFrame:
    """The pieces for the driver (subject `result`) of all rounds, of the pieces that were picked."""

    def positions(bags: dict[Subject, dict[str, pa.Table]]) -> Iterator[pa.RecordBatch]:
        answers = questions.of_positions(with_all_tables(bags[Subject.POSITIONS]))
        for name in (HARMED, PASSED_OVER):
            found = answers.pop(name)
            share = shares.of(*_numbers(found, "run", "session", "seq"))
            yield from _sent(Subject.MESSAGES, name, found, share)
        yield from results(answers)

    def readings(bags: dict[Subject, dict[str, pa.Table]]) -> Iterator[pa.RecordBatch]:
        answers = questions.of_positions(with_all_tables(bags[Subject.READINGS]))
        yield from results({name: answers[name] for name in (FINDINGS, CRASHED)})

    def messages(bags: dict[Subject, dict[str, pa.Table]]) -> Iterator[pa.RecordBatch]:
        bag = bags[Subject.MESSAGES]
        crossing = [table_of(bag[name]) if name in bag else none for name, none in _NONE.items()]
        answers = questions.of_messages(with_all_tables(bag), *crossing, whole=False)
        for name in (KEYED, KEY_PLACES):
            if name in answers:
                found = answers.pop(name)
                yield from _sent(Subject.KEYS, name, found, shares.of(*_numbers(found, "run", "key")))
        if PLACED in answers:
            found = answers.pop(PLACED)
            run, session, topic, partition = _numbers(found, "run", "session", "topic_min", "partition_min")
            share = shares.of(run, mixed(session, place_of(topic, partition)))
            yield from _sent(Subject.ORDER, PLACED, found, share)
        yield from results(answers)

    def order(bags: dict[Subject, dict[str, pa.Table]]) -> Iterator[pa.RecordBatch]:
        yield from results(questions.of_order(table_of(bags[Subject.ORDER][PLACED])))

    def keys(bags: dict[Subject, dict[str, pa.Table]]) -> Iterator[pa.RecordBatch]:
        bag = bags[Subject.KEYS]
        if KEYED in bag and KEY_PLACES in bag:
            yield from results(questions.of_keys(table_of(bag[KEYED]), table_of(bag[KEY_PLACES])))

    first = _round(picked, Subject.POSITIONS, positions)
    second = _round(picked.unionAll(first), Subject.MESSAGES, messages)
    every = first.unionAll(second).unionAll(_round(picked, Subject.READINGS, readings))
    if questions.about_order:
        every = every.unionAll(_round(second, Subject.ORDER, order))
    if questions.about(Subject.KEYS):
        every = every.unionAll(_round(second, Subject.KEYS, keys))
    return every.where(f"subject = '{Subject.RESULT}'")


_POSITION = {"run": pl.Int64, "topic": pl.Int32, "partition": pl.Int32, "offset": pl.Int64}
_MESSAGE = {"run": pl.Int64, "session": pl.Int64, "seq": pl.Int64}
_NONE: dict[str, pl.DataFrame] = {
    HARMED: pl.DataFrame(schema=_MESSAGE),
    PASSED_OVER: pl.DataFrame(
        schema={**_POSITION, "session": pl.Int64, "seq": pl.Int64, "acked": pl.Boolean}
    ),
}

Judge = Callable[[dict[Subject, dict[str, pa.Table]]], Iterator[pa.RecordBatch]]


def _round(packed: DataFrame, subject: Subject, judge: Judge) -> DataFrame:
    from pyspark import StorageLevel

    def of_share(table: pa.Table) -> pa.Table:
        return pa.Table.from_batches(list(judge(unpacked(table.to_batches()))), schema=table.schema)

    mine = packed.where(f"subject = '{subject}'").groupBy("share")
    # On disk, since later rounds and the driver read it again, and it may be much.
    return mine.applyInArrow(of_share, PIECE).persist(StorageLevel.DISK_ONLY)


def results(answers: Answers) -> Iterator[pa.RecordBatch]:
    """Pieces for the driver; findings and crashes always, so that there is a table of each."""
    for name, rows in answers.items():
        found = to_arrow(rows) if name == FINDINGS else rows.to_arrow()
        for first in range(0, max(1, found.num_rows), ROWS_A_PIECE):
            yield piece(Subject.RESULT, name, found.slice(first, ROWS_A_PIECE))


def _numbers(rows: pl.DataFrame, *columns: str) -> Iterator[Ints]:
    for name in columns:
        yield rows[name].fill_null(_NO_SESSION).to_numpy().astype(np.int64)


def _sent(subject: Subject, name: str, rows: pl.DataFrame, share: Ints) -> Iterator[pa.RecordBatch]:
    """Rows for a later round, to their shares."""
    for batch in rows.to_arrow().combine_chunks().to_batches():
        yield from pieces(subject, name, batch, share)


def with_shares(bag: Bag, shares: Shares) -> Iterator[pa.RecordBatch]:
    """Rows that the driver found, for the round of readings."""
    for name, table in bag.items():
        c: dict[str, Any] = {column: table[column].to_numpy() for column in table.column_names}
        place = c["place"] if "place" in c else place_of(c["to_topic"], c["to_partition"])
        for batch in table.combine_chunks().to_batches():
            yield from pieces(Subject.READINGS, name, batch, shares.of(c["run"], place))
