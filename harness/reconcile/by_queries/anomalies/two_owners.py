"""two_owners: a partition was given to a member of the group before the one that had it gave it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import LEDGER, finding, when
from harness.reconcile.by_queries.names import reader_mark
from harness.reconcile.by_queries.tables import Tables


class TwoOwners:
    anomaly: ClassVar[str] = "two_owners"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("ASSIGNED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.OWNER: Why.REPEATED}

    def find(self, tables: Tables) -> DataFrame:
        assert tables.shared is not None
        return tables.shared.selectExpr(*finding(
            self.anomaly,
            messages="CAST(array() AS array<string>)", offsets="CAST(array() AS array<bigint>)", sender="NULL",
            reader=reader_mark("second"),
            evidence={"first": reader_mark("first"), "seconds": "round((until - t) / 1e9, 6)"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        return (
            f"{row.get('reader')} was given {row['topic']}/{row['partition']} {when(row)}. {evidence.get('first')} had it "
            f"and gave it back only {evidence.get('seconds')} s later: both owned it."
        )


finder_class = TwoOwners
