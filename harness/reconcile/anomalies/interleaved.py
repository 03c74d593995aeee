"""interleaved: another writer's record between two sends of one transaction. Always allowed, counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import HISTORY, finding, sql
from harness.reconcile.find.tables import PARTITION, HistoryTables
from harness.reconcile.screen.spaces import Space, Why

_BETWEEN = "offset > least(first_offset, second_offset) AND offset < greatest(first_offset, second_offset)"


class Interleaved:
    anomaly: ClassVar[str] = "interleaved"
    asked_of: ClassVar[tuple[str, ...]] = (HISTORY,)
    compared: ClassVar[tuple[str, ...]] = ()
    woken_by: ClassVar[Mapping[Space, Why]] = {}

    def of_history(self, tables: HistoryTables) -> pl.DataFrame:
        others = tables.log.select(*PARTITION, "offset", pl.col("txn").alias("writer"))
        pairs = tables.neighbours.join(others, on=PARTITION, how="inner").filter(
            sql(f"{_BETWEEN} AND writer != txn")
        )
        found = pairs.group_by(tables.neighbours.columns).agg(pl.col("offset").n_unique().alias("strangers"))
        return finding(
            tables.known.named(found), self.anomaly,
            messages=["sender || '-' || first_seq", "sender || '-' || second_seq"],
            offsets=["first_offset", "second_offset"], evidence={"strangers": "strangers", "scope": "'within'"},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        first, second = row["messages"]
        return (
            f"{first} and {second} were sent one after the other in one transaction. "
            f"{(row.get('evidence') or {}).get('strangers')} records of others are between them."
        )


finder_class = Interleaved
