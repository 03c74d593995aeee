"""unseen: acked and never read, in a history without a final read: it may be lost or late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import HISTORY, finding, first, sql
from harness.reconcile.find.tables import ACKED, MessageTables
from harness.reconcile.screen.spaces import Space, Why

_NEVER_READ = f"attempted AND outcome = {ACKED} AND NOT visible"


class Unseen:
    anomaly: ClassVar[str] = "unseen"
    asked_of: ClassVar[tuple[str, ...]] = (HISTORY,)
    compared: ClassVar[tuple[str, ...]] = ()
    woken_by: ClassVar[Mapping[Space, Why]] = {}

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        return finding(
            tables.known.named(tables.messages.filter(sql(_NEVER_READ))), self.anomaly,
            topic="intended_topic", partition="intended_partition", offsets=["offset_min"], evidence={"t": "t"},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        return f"{first(row)} was acked and no ok poll has read it. It is lost, or it will be read later."


finder_class = Unseen
