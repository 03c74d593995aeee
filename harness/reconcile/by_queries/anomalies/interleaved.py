"""interleaved: another writer's record between two sends of one transaction. Always allowed, counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import HISTORY, finding
from harness.reconcile.by_queries.look import PARTITION
from harness.reconcile.by_queries.tables import Tables

_BETWEEN = "offset > least(first_offset, second_offset) AND offset < greatest(first_offset, second_offset)"


class Interleaved:
    anomaly: ClassVar[str] = "interleaved"
    asked_of: ClassVar[tuple[str, ...]] = (HISTORY,)
    compared: ClassVar[tuple[str, ...]] = ()
    woken_by: ClassVar[Mapping[Space, Why]] = {}

    def find(self, tables: Tables) -> DataFrame:
        assert tables.neighbours is not None
        others = tables.log.selectExpr(*PARTITION, "offset", "txn AS writer")
        pairs = tables.neighbours.join(others, on=PARTITION, how="inner").where(
            f"{_BETWEEN} AND writer != txn"
        )
        found = pairs.groupBy(*tables.neighbours.columns).agg(f.expr("count(DISTINCT offset) AS strangers"))
        return tables.named(found).selectExpr(*finding(
            self.anomaly,
            messages="array(sender || '-' || first_seq, sender || '-' || second_seq)",
            offsets="array(first_offset, second_offset)", evidence={"strangers": "strangers", "scope": "'within'"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        first, second = row["messages"]
        return (
            f"{first} and {second} were sent one after the other in one transaction. "
            f"{(row.get('evidence') or {}).get('strangers')} records of others stand between them."
        )


finder_class = Interleaved
