"""torn: some records of a committed transaction are visible, and others, in partitions that were read whole, are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import ID, LEDGER, finding, sql, when
from harness.reconcile.find.tables import TransactionTables
from harness.reconcile.screen.spaces import Space, Why
from harness.reconcile.screen.transaction_fates import TRANSACTION


class Torn:
    anomaly: ClassVar[str] = "torn"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("READ_IN_TXN",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.MISSING | Why.OPEN_TXN}

    def of_transactions(self, tables: TransactionTables) -> pl.DataFrame:
        gone = tables.gone.sort("seq").group_by(*TRANSACTION, "sender").agg(
            sql(ID).alias("ids"), pl.col("acked_offset").drop_nulls().alias("offsets"), pl.col("topic", "partition").first(),
            pl.len().alias("missing"), pl.col("t").min(),
        )  # fmt: skip
        # `visible` counts the whole log: other records of the transaction may be in sound blocks.
        return finding(
            gone.join(tables.visible, on=TRANSACTION, how="inner"), self.anomaly,
            messages=pl.col("ids"), offsets=pl.col("offsets"),
            evidence={"txn": "txn", "visible": "there", "missing": pl.col("missing")},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        return (
            f"Transaction {evidence.get('txn')} of {row.get('sender')}, {when(row)}, is committed: {evidence.get('visible')} "
            f"of its records are visible to read_committed readers and {evidence.get('missing')} are not, among them "
            f"{row['messages'][0]} in {row['topic']}/{row['partition']}."
        )


finder_class = Torn
