"""Asking the finders about the rows of one share: positions first, then messages, keys and transactions.

A round takes tables and returns tables: findings, finders that crashed, and what a later round needs of this one. Few
rows are one share in the driver. Many are shares of Spark tasks (harness.reconcile.find.shares), by the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from harness.contracts import Finder
from harness.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile.blocks import Space, Why
from harness.reconcile.find import tables as make
from harness.reconcile.find.findings import COLUMNS
from harness.reconcile.find.missing import gone_of, unjudged
from harness.reconcile.find.sql import sql
from harness.reconcile.find.tables import (
    KeyTables,
    Known,
    MessageTables,
    PositionTables,
    TransactionTables,
    table_of,
)
from harness.reconcile.pieces import Bag, Subject
from harness.reconcile.schema import LARGE, SCHEMAS

FINDINGS, CRASHED, UNJUDGED = "findings", "crashed", "unjudged"
HARMED, PASSED_OVER = "harmed", "passed_over"  # positions for the round of messages
KEYED, KEY_PLACES = "keyed", "key_places"
GONE, VISIBLE = "gone", "visible"
PLACED = "placed"  # for the round of order

_CRASHED = pl.Schema({"finder": pl.String, "reason": pl.String})

Answers = dict[str, pl.DataFrame]


@dataclass(frozen=True)
class Questions:
    """The finders to ask, and what they need besides the rows of a share."""

    known: Known
    finders: Sequence[Finder]
    missing: bool  # something owed is not there: ask also what could not be judged

    def about(self, subject: Subject) -> list[tuple[str, Callable[[Any], pl.DataFrame]]]:
        return questions(self.finders, subject)

    # --- the rounds ---

    def of_positions(self, bag: Bag) -> Answers:
        """Findings about positions, and what the round of messages needs of them."""
        rows = self._prepared(bag)
        positions = make.positions_of(rows)
        records = pl.concat([rows["log"], self._prepared({**bag, "log": bag["records"]})["log"]])
        asked = PositionTables(
            self.known,
            rows["deliveries"],
            positions,
            make.claims_of(rows),
            make.readable_of(records),
            self._steps(bag["steps"]),
            self._named_readers(
                _at_places(bag["overcommits"]).with_columns(sql("nullif(given, 0)").alias("given"))
            ),
            self._shared(bag["shared"]),
            table_of(bag["inputs"]),
            table_of(bag["effects"]),
        )
        passed_over = positions.filter(sql("passed AND delivered = 0"))
        return {
            **ask(self.about(Subject.POSITIONS), asked),
            HARMED: make.harmed_of(positions),
            PASSED_OVER: passed_over.select(*make.POSITION, "session", "seq", "acked"),
        }

    @property
    def about_order(self) -> bool:
        return any(x.woken_by.get(Space.MESSAGE, Why(0)) & Why.OVERTAKEN for x in self.finders)

    def of_messages(
        self, bag: Bag, harmed: pl.DataFrame, passed_over: pl.DataFrame, *, whole: bool = True
    ) -> Answers:
        """Findings about messages, and what the rounds of order, keys and transactions need of them.

        `whole`: all messages of each session are in the bag, so that order can be judged now.
        """
        known, rows = self.known, self._prepared(bag)
        fates = make.fates_of(known.transactions, rows["log"], rows["deliveries"])
        messages = make.messages_of(rows, fates, known.bounds, harmed)
        places, placed = make.places_of(rows["log"]), make.placed_of(messages)
        pairs = make.pairs_of(placed if whole else placed.clear())
        asked = MessageTables(
            known, rows["log"], rows["deliveries"], fates, messages, places, pairs, passed_over
        )
        answers = ask(self.about(Subject.MESSAGES), asked)
        if not whole and self.about_order:
            answers[PLACED] = placed
        if self.missing:
            answers[UNJUDGED] = unjudged(messages, known)
        if self.about(Subject.KEYS):
            answers[KEYED] = make.keyed_of(messages, rows["deliveries"], known)
            answers[KEY_PLACES] = make.keyed_places_of(answers[KEYED], places)
        if self.about(Subject.TRANSACTIONS):
            answers[GONE] = gone_of(messages, known)
        return answers

    def of_order(self, placed: pl.DataFrame) -> Answers:
        """Findings about the order of messages; all of each session and partition are there."""
        rows = self._prepared({name: SCHEMAS[name].empty_table() for name in LARGE})
        fates = make.fates_of(self.known.transactions, rows["log"], rows["deliveries"])
        messages, places = make.messages_of(rows, fates, self.known.bounds), make.places_of(rows["log"])
        nothing = make.positions_of(rows).select(*make.POSITION, "session", "seq", "acked")
        asked = MessageTables(
            self.known,
            rows["log"],
            rows["deliveries"],
            fates,
            messages,
            places,
            make.pairs_of(placed),
            nothing,
        )
        return ask(self.about(Subject.MESSAGES), asked)

    def of_keys(self, keyed: pl.DataFrame, places: pl.DataFrame) -> Answers:
        return ask(self.about(Subject.KEYS), KeyTables(self.known, keyed, places))

    def of_transactions(self, gone: pl.DataFrame, visible: pl.DataFrame) -> Answers:
        return ask(self.about(Subject.TRANSACTIONS), TransactionTables(self.known, gone, visible))

    # --- tables ---

    def _prepared(self, bag: Bag) -> dict[str, pl.DataFrame]:
        return make.prepared(
            {name: table_of(bag[name]) for name in ("attempts", "log", "deliveries")}, self.known
        )

    def _steps(self, steps: pa.Table) -> pl.DataFrame:
        """As in PositionTables: within one poll or between two, and whether a rebalance excuses the step."""
        strange = BAD_PAYLOAD | FOREIGN_RUN
        known = [
            pl.when((pl.col(f"{end}_flags") & strange) == 0)
            .then(pl.col(f"{end}_{name}"))
            .alias(f"{end}_{name}")
            for end in ("from", "to")
            for name in ("session", "seq")
        ]
        told = table_of(steps).select(
            "run", *(pl.col(f"to_{name}").cast(pl.Int32).alias(name) for name in ("reader", "topic", "partition")),
            sql("CASE WHEN from_t = to_t THEN 'within' ELSE 'between' END").alias("scope"),
            sql("from_generation != to_generation").alias("excused"),
            "from_t", "from_offset", "to_t", "to_offset", *known,
        )  # fmt: skip
        return self._named_readers(told)

    def _shared(self, shared: pa.Table) -> pl.DataFrame:
        rows = _at_places(shared)
        for owner in ("first", "second"):
            rows = self._named_readers(rows, owner).drop(owner).rename({"reader_name": owner})
        return rows

    def _named_readers(self, rows: pl.DataFrame, reader: str = "reader") -> pl.DataFrame:
        """The rows with the name of their reader, as reader_name."""
        names = self.known.readers.select("run", pl.col("reader").alias(reader), "reader_name")
        return rows.with_columns(pl.col(reader).cast(pl.Int32)).join(names, on=["run", reader], how="left")


def _at_places(rows: pa.Table) -> pl.DataFrame:
    """With topic and partition for the place."""
    place = pl.col("place")
    return table_of(rows).with_columns(
        (place // (1 << 32)).cast(pl.Int32).alias("topic"),
        (place % (1 << 32)).cast(pl.Int32).alias("partition"),
    )


def questions(finders: Sequence[Finder], subject: str) -> list[tuple[str, Callable[[Any], pl.DataFrame]]]:
    """The name of each finder that asks about the subject, and its question."""
    named = ((finder.anomaly, getattr(finder, f"of_{subject}", None)) for finder in finders)
    return [(anomaly, question) for anomaly, question in named if question is not None]


def ask(asked: Sequence[tuple[str, Callable[[Any], pl.DataFrame]]], tables: Any) -> Answers:
    """The findings of all finders. One that raises is named and never hides the others."""
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
