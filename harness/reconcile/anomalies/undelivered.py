"""undelivered: in the log, below the group's committed offset or the drained end, and never delivered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import LEDGER, finding, first, place, when
from harness.reconcile.find.tables import MESSAGE, MessageTables
from harness.reconcile.screen.spaces import Space, Why


class Undelivered:
    anomaly: ClassVar[str] = "undelivered"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("PASSED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.POSITION: Why.MISSING}

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        times = tables.messages.select(*MESSAGE, "t", "t_outcome")
        return finding(
            tables.known.named(tables.passed_over.join(times, on=MESSAGE, how="left")), self.anomaly,
            t="coalesce(t_outcome, t)", evidence={"acked": "acked"},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        return (
            f"{first(row)} from {row.get('sender')}, written {when(row)}, is in {place(row)}. The group has "
            "committed or drained beyond it and was never given it."
        )


finder_class = Undelivered
