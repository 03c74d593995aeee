"""two_owners: a partition was given to a member of the group before the member that had it gave it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import LEDGER, finding, seconds, when
from harness.reconcile.find.tables import StepTables
from harness.reconcile.screen.spaces import Space, Why


class TwoOwners:
    anomaly: ClassVar[str] = "two_owners"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("ASSIGNED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.OWNER: Why.REPEATED}

    def of_steps(self, tables: StepTables) -> pl.DataFrame:
        return finding(
            tables.shared, self.anomaly,
            messages=pl.lit([], pl.List(pl.String)), offsets=pl.lit([], pl.List(pl.Int64)), sender="NULL",
            reader=pl.col("second"), evidence={"first": pl.col("first"), "seconds": seconds("until - t")},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        return (
            f"{row.get('reader')} was given {row['topic']}/{row['partition']} {when(row)}. {evidence.get('first')} had it "
            f"and gave it back only {evidence.get('seconds')} s later: both owned it."
        )


finder_class = TwoOwners
