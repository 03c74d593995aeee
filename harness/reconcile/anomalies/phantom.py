"""phantom: in the log or delivered, but attempted by no producer of this run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.ledger.message import FOREIGN_RUN
from harness.reconcile.find.findings import HISTORY, LEDGER, finding, first, place, sql
from harness.reconcile.find.tables import MessageTables, PositionTables
from harness.reconcile.screen.spaces import Space, Why


class Phantom:
    anomaly: ClassVar[str] = "phantom"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("LOGGED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {
        Space.MESSAGE: Why.UNEXPECTED,
        Space.POSITION: Why.UNEXPECTED | Why.FLAGGED | Why.OBSERVED,
    }

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        return finding(
            tables.known.named(tables.messages.filter(sql("NOT attempted"))), self.anomaly,
            offsets=["offset_min"], topic="coalesce(topic_min, 0)", partition="partition_min", t="NULL",
            evidence={"origin": "'no attempt'", "in_log": "in_log", "delivered": "delivered"},
        )  # fmt: skip

    def of_positions(self, tables: PositionTables) -> pl.DataFrame:
        return finding(
            tables.positions.filter((pl.col("flags") & FOREIGN_RUN) != 0), self.anomaly,
            messages=pl.lit([], pl.List(pl.String)), sender="NULL", t="t_seen",
            evidence={"origin": "'another run'", "in_log": "in_log", "delivered": "delivered"},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        if (row.get("evidence") or {}).get("origin") == "another run":
            return f"A record in {place(row)} is intact but was sent by another run. No producer of this run attempted it."
        return (
            f"{first(row)} was found in {place(row)}. It claims to come from {row.get('sender')}, "
            "which never attempted it."
        )


finder_class = Phantom
