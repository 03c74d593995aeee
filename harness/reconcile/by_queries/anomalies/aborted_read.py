"""aborted_read: a reader got a record of a transaction that was certainly aborted or rejected.

A read_committed reader must not. What a group that chose read_uncommitted got is excused by that choice: it
is found and counted all the same, with the excuse `read_uncommitted`. An observer of read_uncommitted is not asked.
"""

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

_ABORTED = f"txn > 0 AND fate = '{ABORTED}'"


class AbortedRead:
    anomaly: ClassVar[str] = "aborted_read"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("READ_IN_TXN",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.READ_UNCOMMITTED | Why.OPEN_TXN}

    def find(self, tables: Tables) -> DataFrame:
        columns = [*MESSAGE, "topic", "partition", "offset", "reader", "isolation", "t"]
        given = tables.deliveries.where(OURS).where(f"NOT {tables.names.sees_anything()}")
        final = (
            tables.log.where(OURS)
            .where("committed")
            .selectExpr(*columns[:6], "'final-reader' AS reader", "'read_committed' AS isolation", "t")
        )
        aborted = tables.messages.where(_ABORTED).select(*MESSAGE, "txn")
        got = (
            tables.read_by(given)
            .select(*columns)
            .unionByName(final)
            .join(aborted, on=MESSAGE, how="inner")
            .groupBy(*MESSAGE, "txn", "topic", "partition", "offset", "reader", "isolation")
            .agg(*map(f.expr, ("min(t) AS t", "count(1) AS times")))
        )
        return tables.named(got).selectExpr(*finding(
            self.anomaly,
            reader="reader", excuse=READ_UNCOMMITTED,
            evidence={"txn": "txn", "isolation": "isolation", "times": "times"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        return (
            f"{row.get('reader')} ({evidence.get('isolation')}) got {first(row)} from {place(row)} {when(row)}. "
            f"It belongs to transaction {evidence.get('txn')} of {row.get('sender')}, which was certainly not committed."
        )


finder_class = AbortedRead
