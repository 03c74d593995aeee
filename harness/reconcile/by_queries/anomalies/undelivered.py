"""undelivered: in the log, below the group's committed offset or the drained end, and never delivered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import ID, LEDGER, finding, first, known, place, when
from harness.reconcile.by_queries.tables import MESSAGE, Tables

_NEVER = "passed AND delivered = 0"


class Undelivered:
    anomaly: ClassVar[str] = "undelivered"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("PASSED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.POSITION: Why.MISSING}

    def find(self, tables: Tables) -> DataFrame:
        passed_over = tables.positions.where(_NEVER).selectExpr("*", "holder.*")
        times = tables.messages.select(*MESSAGE, "t", "t_outcome")
        return tables.named(passed_over.join(times, on=MESSAGE, how="left")).selectExpr(*finding(
            self.anomaly, messages=known(ID), t="coalesce(t_outcome, t)", evidence={"acked": "acked"}
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        return (
            f"{first(row)} from {row.get('sender')}, written {when(row)}, stands in {place(row)}. The group has "
            "committed or drained beyond it and was never given it."
        )


finder_class = Undelivered
