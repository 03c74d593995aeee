"""premature_read: a reader got a record of a transaction before it was committed, its own included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import (
    HISTORY,
    LEDGER,
    READ_UNCOMMITTED,
    finding,
    first,
    place,
    when,
)
from harness.reconcile.by_queries.look import OURS
from harness.reconcile.by_queries.tables import ABORTED, MESSAGE, Tables
from harness.reconcile.fates import TRANSACTION

# What is aborted in the end is aborted_read, unless its own transaction read it.
_TOO_EARLY = f"t < asked_at AND fate != '{ABORTED}'"


class PrematureRead:
    anomaly: ClassVar[str] = "premature_read"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("READ_IN_TXN",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.PREMATURE}

    def find(self, tables: Tables) -> DataFrame:
        given = tables.deliveries.where(OURS).where(f"txn > 0 AND NOT {tables.names.sees_anything()}")
        early = _TOO_EARLY
        if "op" in given.columns:
            early = f"{_TOO_EARLY} OR op = txn"
        got = (
            tables.read_by(given.join(f.broadcast(tables.fates), on=TRANSACTION, how="inner").where(early))
            .groupBy(*MESSAGE, "txn", "topic", "partition", "offset", "reader", "isolation", "asked_at")
            .agg(f.expr("min(t) AS t"))
        )
        return tables.named(got).selectExpr(*finding(
            self.anomaly,
            reader="reader", excuse=READ_UNCOMMITTED,
            evidence={"txn": "txn", "isolation": "isolation", "seconds_before": "round((asked_at - t) / 1e9, 6)"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        return (
            f"{row.get('reader')} ({evidence.get('isolation')}) got {first(row)} from {place(row)} {when(row)}. "
            f"Its transaction {evidence.get('txn')} of {row.get('sender')} was asked to commit only "
            f"{evidence.get('seconds_before')} s later."
        )


finder_class = PrematureRead
