"""Rounds of questions to the finders, subject by subject: a round takes the tables of a share and returns tables.

Each round returns findings, finders that crashed, and rows for later rounds. Few rows are one share in the driver; many are
shares of Spark tasks, by the same functions (harness.reconcile.closer_look).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa

from harness.contracts import Finder
from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile.find import derive
from harness.reconcile.find.findings import COLUMNS, sql
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
from harness.reconcile.select.select import with_all_tables
from harness.reconcile.spark.pieces import ROUNDS, Bag, Subject

FINDINGS, CRASHED, UNJUDGED = "findings", "crashed", "unjudged"

_CRASHED = pl.Schema({"finder": pl.String, "reason": pl.String})
# Rows from one round for another, by their names.
_ONWARD: Mapping[str, Mapping[str, type[pl.DataType]]] = {
    "harmed": {"run": pl.Int64, "session": pl.Int64, "seq": pl.Int64},
    "passed_over": {
        "run": pl.Int64, "topic": pl.Int32, "partition": pl.Int32, "offset": pl.Int64, "session": pl.Int64, "seq": pl.Int64,
        "acked": pl.Boolean,
    },
    "visible": {"run": pl.Int64, "session": pl.Int64, "txn": pl.Int64, "there": pl.Int64},
}  # fmt: skip


@dataclass(frozen=True)
class Answers:
    """The answers of a round: `results` for the driver, `onward` for later rounds by subject and name of the table."""

    results: Mapping[str, pl.DataFrame]
    onward: Mapping[tuple[Subject, str], pl.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class FinderQuestions:
    """The finders to ask, and the tables that they need besides the rows of a share."""

    known: Known
    finders: Sequence[Finder]
    missing: bool  # owed messages are missing: count also the messages that could not be judged

    @property
    def rounds(self) -> list[Subject]:
        """The necessary rounds; positions and messages also if only later rounds need their rows."""
        always = (Subject.POSITIONS, Subject.MESSAGES)
        return [subject for subject in ROUNDS if subject in always or self.about(subject)]

    def about(self, subject: Subject) -> list[tuple[str, Callable[[Any], pl.DataFrame]]]:
        return questions(self.finders, subject)

    def ask(self, subject: Subject, bag: Bag) -> Answers:
        """Ask one round of questions about the rows of one share."""
        rounds: dict[Subject, Callable[[Bag], Answers]] = {
            Subject.POSITIONS: self._of_positions,
            Subject.STEPS: self._of_steps,
            Subject.MESSAGES: self._of_messages,
            Subject.ORDER: lambda rows: self._of(
                subject, OrderTables(self.known, derive.pairs_of(_table(rows, "placed")))
            ),
            Subject.KEYS: lambda rows: self._of(
                subject, KeyTables(self.known, _table(rows, "keyed"), _table(rows, "key_places"))
            ),
            Subject.TRANSACTIONS: self._of_transactions,
        }
        return rounds[subject](bag)

    def _of(self, subject: Subject, tables: Any) -> Answers:
        return Answers(ask(self.about(subject), tables))

    def _of_positions(self, bag: Bag) -> Answers:
        bag = with_all_tables(bag)
        rows = self._prepared(bag)
        positions = derive.positions_of(rows)
        asked = PositionTables(
            self.known,
            rows["deliveries"],
            positions,
            derive.claims_of(rows),
            table_of(bag["inputs"]),
            table_of(bag["effects"]),
        )
        passed_over = positions.filter(sql("passed AND delivered = 0"))
        return Answers(
            ask(self.about(Subject.POSITIONS), asked),
            {
                (Subject.MESSAGES, "harmed"): derive.harmed_of(positions),
                (Subject.MESSAGES, "passed_over"): passed_over.select(*POSITION, "session", "seq", "acked"),
            },
        )

    def _of_steps(self, bag: Bag) -> Answers:
        bag = with_all_tables(bag)
        overcommits = self._named_readers(table_of(bag["overcommits"]))
        asked = StepTables(
            self.known,
            self._steps(bag["steps"]),
            derive.readable_of(table_of(bag["records"]), self.known),
            overcommits.with_columns(sql("nullif(given, 0)").alias("given")),
            self._shared(bag["shared"]),
        )
        return self._of(Subject.STEPS, asked)

    def _of_messages(self, bag: Bag) -> Answers:
        known, rows = self.known, self._prepared(with_all_tables(bag))
        messages = derive.messages_of(rows, known, _table(bag, "harmed"))
        missing, places = classed(messages, known.bounds), derive.places_of(rows["log"])
        asked = MessageTables(
            known, rows["log"], rows["deliveries"], messages, missing, places, _table(bag, "passed_over")
        )
        results, onward = ask(self.about(Subject.MESSAGES), asked), {}
        if self.missing:
            results[UNJUDGED] = unjudged(missing, known)
        if self.about(Subject.ORDER):
            onward[Subject.ORDER, "placed"] = derive.placed_of(messages)
        if self.about(Subject.KEYS):
            keyed = derive.keyed_of(messages, rows["deliveries"], known)
            onward[Subject.KEYS, "keyed"] = keyed
            onward[Subject.KEYS, "key_places"] = derive.keyed_places_of(keyed, places)
        if self.about(Subject.TRANSACTIONS):
            onward[Subject.TRANSACTIONS, "gone"] = gone_of(missing, known)
        return Answers(results, onward)

    def _of_transactions(self, bag: Bag) -> Answers:
        if "gone" not in bag:
            return Answers(ask([], None))
        visible = _table(bag, "visible").group_by("run", "session", "txn").agg(pl.col("there").sum())
        return self._of(Subject.TRANSACTIONS, TransactionTables(self.known, _table(bag, "gone"), visible))

    # --- tables ---

    def _prepared(self, bag: Bag) -> dict[str, pl.DataFrame]:
        rows = {name: table_of(bag[name]) for name in ("attempts", "log", "deliveries")}
        return derive.prepared(rows, self.known)

    def _steps(self, steps: pa.Table) -> pl.DataFrame:
        strange = BAD_PAYLOAD | FOREIGN_RUN
        known = [
            pl.when((pl.col(f"{end}_flags") & strange) == 0)
            .then(pl.col(f"{end}_{name}"))
            .alias(f"{end}_{name}")
            for end in ("from", "to")
            for name in ("session", "seq")
        ]
        named = table_of(steps).select(
            "run", *(pl.col(f"to_{name}").cast(pl.Int32).alias(name) for name in ("reader", "topic", "partition")),
            sql("CASE WHEN from_t = to_t THEN 'within' ELSE 'between' END").alias("scope"),
            sql("from_generation != to_generation").alias("excused"),
            "from_t", "from_offset", "to_t", "to_offset", *known,
        )  # fmt: skip
        return self._named_readers(named)

    def _shared(self, shared: pa.Table) -> pl.DataFrame:
        rows = table_of(shared)
        for owner in ("first", "second"):
            rows = self._named_readers(rows, owner).drop(owner).rename({"reader_name": owner})
        return rows

    def _named_readers(self, rows: pl.DataFrame, reader: str = "reader") -> pl.DataFrame:
        """Return the rows with the name of their reader as reader_name, and with topics and partitions of 32 bits."""
        names = self.known.readers.select("run", pl.col("reader").alias(reader), "reader_name")
        numbers = [pl.col(name).cast(pl.Int32) for name in (reader, "topic", "partition")]
        return rows.with_columns(numbers).join(names, on=["run", reader], how="left")


def _table(bag: Bag, name: str) -> pl.DataFrame:
    return table_of(bag[name]) if name in bag else pl.DataFrame(schema=_ONWARD[name])


def questions(finders: Sequence[Finder], subject: str) -> list[tuple[str, Callable[[Any], pl.DataFrame]]]:
    """Return the name of each finder that asks about the subject, and its question."""
    named = ((finder.anomaly, getattr(finder, f"of_{subject}", None)) for finder in finders)
    return [(anomaly, question) for anomaly, question in named if question is not None]


def ask(asked: Sequence[tuple[str, Callable[[Any], pl.DataFrame]]], tables: Any) -> dict[str, pl.DataFrame]:
    """Return the findings of all finders. A finder that raises is listed as crashed and never hides the others."""
    found, crashed = [COLUMNS.to_frame()], []
    for anomaly, question in asked:
        try:
            found.append(question(tables).select(COLUMNS.names()))
        except Exception as error:  # noqa: BLE001  a finder may raise anything
            crashed.append((anomaly, reason(error)))
    return {FINDINGS: pl.concat(found), CRASHED: pl.DataFrame(crashed, schema=_CRASHED, orient="row")}


def reason(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"[:500]
