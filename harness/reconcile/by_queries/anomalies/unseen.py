"""unseen: acked and never read, in a history without a final read: lost or late, it cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import HISTORY, finding, first, known
from harness.reconcile.by_queries.tables import ACKED, Tables

_NEVER_READ = f"attempted AND outcome = {ACKED} AND NOT visible"


class Unseen:
    anomaly: ClassVar[str] = "unseen"
    asked_of: ClassVar[tuple[str, ...]] = (HISTORY,)
    compared: ClassVar[tuple[str, ...]] = ()
    woken_by: ClassVar[Mapping[Space, Why]] = {}

    def find(self, tables: Tables) -> DataFrame:
        return tables.named(tables.messages.where(_NEVER_READ)).selectExpr(*finding(
            self.anomaly,
            topic="intended_topic", partition="intended_partition", offsets=known("offset_min"), evidence={"t": "t"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        return f"{first(row)} was acked and no ok poll has read it. It is lost, or it will be read later."


finder_class = Unseen
