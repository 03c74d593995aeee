"""aborted_read: a reader got a record of a transaction that was certainly aborted or rejected.

A read_committed reader must not get one. A group that chose read_uncommitted may: its reads are found and counted with the
excuse `read_uncommitted`. Reads of an observer of read_uncommitted are not examined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import HISTORY, LEDGER, finding_of_read, reader_got, sql
from harness.reconcile.find.known import ABORTED
from harness.reconcile.find.tables import MESSAGE, MessageTables
from harness.reconcile.screen.spaces import Space, Why

_ABORTED = f"txn > 0 AND fate = '{ABORTED}'"


class AbortedRead:
    anomaly: ClassVar[str] = "aborted_read"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("READ_IN_TXN",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.READ_UNCOMMITTED | Why.OPEN_TXN}

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        columns = [*MESSAGE, "topic", "partition", "offset", "reader_name", "isolation", "t"]
        given = tables.deliveries.filter(sql("ours AND NOT shown_all")).select(columns)
        final = (
            tables.log.filter(sql("ours AND committed"))
            .with_columns(reader_name=pl.lit("final-reader"), isolation=pl.lit("read_committed"))
            .select(columns)
        )
        aborted = tables.messages.filter(sql(_ABORTED)).select(*MESSAGE, "txn")
        got = (
            pl.concat([given, final])
            .join(aborted, on=MESSAGE, how="inner")
            .group_by(*MESSAGE, "txn", "topic", "partition", "offset", "reader_name", "isolation")
            .agg(pl.col("t").min(), pl.len().alias("times"))
        )
        return finding_of_read(tables.known.named(got), self.anomaly, times="times")

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        return f"{reader_got(row)} It belongs to transaction {evidence.get('txn')} of {row.get('sender')}, which was certainly not committed."


finder_class = AbortedRead
