"""premature_read: a reader got a record of a transaction before it was committed, its own included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import HISTORY, LEDGER, finding_of_read, reader_got, seconds, sql
from harness.reconcile.find.known import ABORTED
from harness.reconcile.find.tables import MESSAGE, MessageTables
from harness.reconcile.screen.spaces import Space, Why
from harness.reconcile.screen.transaction_fates import TRANSACTION

_TOO_EARLY = f"t < asked_at AND fate != '{ABORTED}'"


class PrematureRead:
    anomaly: ClassVar[str] = "premature_read"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("READ_IN_TXN",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.PREMATURE}

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        given = tables.deliveries.filter(sql("ours AND txn > 0 AND NOT shown_all"))
        # A history says which operation a read belongs to: a transaction must not read its own records either.
        early = f"{_TOO_EARLY} OR op = txn" if "op" in given.columns else _TOO_EARLY
        got = (
            given.join(tables.known.fates, on=TRANSACTION, how="inner")
            .filter(sql(early))
            .group_by(*MESSAGE, "txn", "topic", "partition", "offset", "reader_name", "isolation", "asked_at")
            .agg(pl.col("t").min())
        )
        before = seconds("asked_at - t")
        return finding_of_read(tables.known.named(got), self.anomaly, seconds_before=before)

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        return (
            f"{reader_got(row)} Its transaction {evidence.get('txn')} of {row.get('sender')} was asked to commit only "
            f"{evidence.get('seconds_before')} s later."
        )


finder_class = PrematureRead
