"""Rounds of questions to the finders, one for each subject, from tables of rows in doubt to tables of findings.

Few rows are judged in the driver, many inside Spark tasks, share by share: both ask the same rounds (harness.reconcile.closer_look).
A round answers with findings, with the finders that crashed, and with rows that later rounds need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from harness.contracts import Finder
from harness.reconcile.arrays import Ints, mixed, place_of
from harness.reconcile.find import derive
from harness.reconcile.find.findings import COLUMNS, sql, to_arrow
from harness.reconcile.find.known import Known, table_of
from harness.reconcile.find.missing import classed, gone_of, unjudged
from harness.reconcile.find.tables import (
    POSITION,
    KeyTables,
    MessageTables,
    OrderTables,
    PositionTables,
    StepTables,
    TransactionTables,
)
from harness.reconcile.select.pick import PICKED
from harness.reconcile.spark.pieces import ALL_TOGETHER, Bag, Shares, Subject, piece, pieces

FINDINGS, CRASHED, UNJUDGED = "findings", "crashed", "unjudged"
ROWS_A_PIECE = 1 << 12  # of a result: Spark hands them to the driver by the hundred

Question = Callable[[Any], pl.DataFrame]
# The tables that a round returns, by the subject that they are for (RESULT: the driver) and by name.
Answers = dict[tuple[Subject, str], pl.DataFrame]

# The rounds in order, and the earlier rounds whose answers each needs. Rows of the ledger are picked for the first three.
ROUNDS: Mapping[Subject, tuple[Subject, ...]] = {
    Subject.POSITIONS: (),
    Subject.STEPS: (),
    Subject.MESSAGES: (Subject.POSITIONS,),
    Subject.ORDER: (Subject.MESSAGES,),
    Subject.KEYS: (Subject.MESSAGES,),
    Subject.TRANSACTIONS: (Subject.MESSAGES,),
}
PICKED_FOR = (Subject.POSITIONS, Subject.STEPS, Subject.MESSAGES)

_CRASHED = pl.Schema({"finder": pl.String, "reason": pl.String})
# Tables that a round may lack, besides those that are picked.
_OPTIONAL: Mapping[str, Mapping[str, type[pl.DataType]]] = {
    "harmed": {"run": pl.Int64, "session": pl.Int64, "seq": pl.Int64},
    "passed_over": {
        "run": pl.Int64, "topic": pl.Int32, "partition": pl.Int32, "offset": pl.Int64, "session": pl.Int64, "seq": pl.Int64,
        "acked": pl.Boolean,
    },
    "visible": {"run": pl.Int64, "session": pl.Int64, "txn": pl.Int64, "there": pl.Int64},
}  # fmt: skip


@dataclass(frozen=True)
class Rounds:
    """The finders to ask, and the tables that they need besides the rows in doubt."""

    known: Known
    finders: Sequence[Finder]

    @property
    def needed(self) -> list[Subject]:
        """The rounds to ask; positions and messages also if only later rounds need their rows."""
        always = (Subject.POSITIONS, Subject.MESSAGES)
        return [subject for subject in ROUNDS if subject in always or self._asks(subject)]

    def ask(self, subject: Subject, bag: Bag) -> Answers:
        """Ask one round of questions about the rows of one share."""
        rounds: dict[Subject, Callable[[Bag], Answers]] = {
            Subject.POSITIONS: self._positions,
            Subject.STEPS: self._steps,
            Subject.MESSAGES: self._messages,
            Subject.ORDER: self._order,
            Subject.KEYS: self._keys,
            Subject.TRANSACTIONS: self._transactions,
        }
        return rounds[subject](bag)

    def _asks(self, subject: Subject) -> bool:
        return bool(questions(self.finders, subject))

    def _ask(self, subject: Subject, tables: Any) -> Answers:
        return ask(questions(self.finders, subject), tables)

    def _positions(self, bag: Bag) -> Answers:
        rows = self._prepared(bag)
        positions = derive.positions_of(rows)
        asked = PositionTables(
            self.known,
            rows["deliveries"],
            positions,
            derive.claims_of(rows),
            table(bag, "inputs"),
            table(bag, "effects"),
        )
        passed_over = positions.filter(sql("passed AND delivered = 0"))
        answers = self._ask(Subject.POSITIONS, asked)
        answers[Subject.MESSAGES, "harmed"] = derive.harmed_of(positions)
        answers[Subject.MESSAGES, "passed_over"] = passed_over.select(*POSITION, "session", "seq", "acked")
        return answers

    def _steps(self, bag: Bag) -> Answers:
        shared = table(bag, "shared")
        for owner in ("first", "second"):
            shared = self._named_readers(shared, owner).drop(owner).rename({"reader_name": owner})
        overcommits = self._named_readers(table(bag, "overcommits"))
        asked = StepTables(
            self.known,
            self._named_readers(derive.steps_of(table(bag, "steps"))),
            derive.readable_of(table(bag, "records"), self.known),
            overcommits.with_columns(sql("nullif(given, 0)").alias("given")),
            shared,
        )
        return self._ask(Subject.STEPS, asked)

    def _messages(self, bag: Bag) -> Answers:
        known, rows = self.known, self._prepared(bag)
        messages = derive.messages_of(rows, known, table(bag, "harmed"))
        missing, places = classed(messages, known.bounds), derive.places_of(rows["log"])
        asked = MessageTables(
            known, rows["log"], rows["deliveries"], messages, missing, places, table(bag, "passed_over")
        )
        answers = self._ask(Subject.MESSAGES, asked)
        answers[Subject.RESULT, UNJUDGED] = unjudged(missing, known)
        if self._asks(Subject.ORDER):
            answers[Subject.ORDER, "placed"] = derive.placed_of(messages)
        if self._asks(Subject.KEYS):
            keyed = derive.keyed_of(messages, rows["deliveries"], known)
            answers[Subject.KEYS, "keyed"] = keyed
            answers[Subject.KEYS, "key_places"] = derive.keyed_places_of(keyed, places)
        if self._asks(Subject.TRANSACTIONS):
            answers[Subject.TRANSACTIONS, "gone"] = gone_of(missing, known)
        return answers

    def _order(self, bag: Bag) -> Answers:
        return self._ask(Subject.ORDER, OrderTables(self.known, derive.pairs_of(table(bag, "placed"))))

    def _keys(self, bag: Bag) -> Answers:
        return self._ask(Subject.KEYS, KeyTables(self.known, table(bag, "keyed"), table(bag, "key_places")))

    def _transactions(self, bag: Bag) -> Answers:
        if "gone" not in bag:
            return ask((), None)  # no record of these transactions is lost
        visible = table(bag, "visible").group_by("run", "session", "txn").agg(pl.col("there").sum())
        return self._ask(Subject.TRANSACTIONS, TransactionTables(self.known, table(bag, "gone"), visible))

    # --- tables ---

    def _prepared(self, bag: Bag) -> dict[str, pl.DataFrame]:
        return derive.prepared(
            {name: table(bag, name) for name in ("attempts", "log", "deliveries")}, self.known
        )

    def _named_readers(self, rows: pl.DataFrame, reader: str = "reader") -> pl.DataFrame:
        """Return the rows with the name of their reader as reader_name, and with topics and partitions of 32 bits."""
        names = self.known.readers.select("run", pl.col("reader").alias(reader), "reader_name")
        numbers = [pl.col(name).cast(pl.Int32) for name in (reader, "topic", "partition")]
        return rows.with_columns(numbers).join(names, on=["run", reader], how="left")


def table(bag: Bag, name: str) -> pl.DataFrame:
    """Return a table of a bag; an empty one if it has no rows in doubt."""
    if name in PICKED:
        schema = PICKED[name]
        # Spark's own reader returns other types than the sealed ones.
        return table_of(bag[name].select(schema.names).cast(schema) if name in bag else schema.empty_table())
    return table_of(bag[name]) if name in bag else pl.DataFrame(schema=_OPTIONAL[name])


def questions(finders: Sequence[Finder], subject: str) -> list[tuple[str, Question]]:
    """Return the name of each finder that asks about the subject, and its question."""
    named = ((finder.anomaly, getattr(finder, f"of_{subject}", None)) for finder in finders)
    return [(anomaly, question) for anomaly, question in named if question is not None]


def ask(asked: Sequence[tuple[str, Question]], tables: Any) -> Answers:
    """Return the findings of all finders. A finder that raises is listed as crashed and never hides the others."""
    found, crashed = [COLUMNS.to_frame()], []
    for anomaly, question in asked:
        try:
            found.append(question(tables).select(COLUMNS.names()))
        except Exception as error:  # noqa: BLE001  a finder may raise anything
            crashed.append((anomaly, reason(error)))
    return {
        (Subject.RESULT, FINDINGS): pl.concat(found),
        (Subject.RESULT, CRASHED): pl.DataFrame(crashed, schema=_CRASHED, orient="row"),
    }


def reason(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"[:500]


# --- answers on their way through Spark -----------------------------------------------------------


def packed(answers: Answers, shares: Shares = ALL_TOGETHER) -> Iterator[pa.RecordBatch]:
    """Yield the answers as pieces: results for the driver, and rows for the shares of later rounds."""
    for (subject, name), rows in answers.items():
        if subject is Subject.RESULT:
            found = to_arrow(rows) if name == FINDINGS else rows.to_arrow()
            for first in range(0, max(1, found.num_rows), ROWS_A_PIECE):
                yield piece(subject, name, found.slice(first, ROWS_A_PIECE))
        else:
            for batch in rows.to_arrow().combine_chunks().to_batches():
                yield from pieces(subject, name, batch, _shares_of(subject, rows, shares))


def _shares_of(subject: Subject, rows: pl.DataFrame, shares: Shares) -> Ints | None:
    """Return the share of each row: rows of one item are in one share, messages as harness.reconcile.select divides them."""

    def column(name: str) -> Ints:
        unknown = -1  # of a record whose message is unknown
        return rows[name].fill_null(unknown).to_numpy().astype(np.int64)

    if subject is Subject.MESSAGES:
        return shares.of(column("run"), column("session"), column("seq"))
    if subject is Subject.ORDER:
        place = place_of(column("topic"), column("partition"))
        return shares.of(column("run"), mixed(column("session"), place))
    if subject is Subject.KEYS:
        # One message may be in several topics; its places go with the first.
        topic = column("key_topic" if "key_topic" in rows.columns else "topic")
        return shares.of(column("run"), place_of(topic, column("key")))
    assert subject is Subject.TRANSACTIONS, subject
    return shares.of(column("run"), mixed(column("session"), column("txn")))
