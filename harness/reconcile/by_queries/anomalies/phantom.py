"""phantom: in the log or delivered, but attempted by nobody in this run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame

from harness.message import FOREIGN_RUN
from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import HISTORY, LEDGER, finding, first, known, place
from harness.reconcile.by_queries.tables import Tables

_FOREIGN = f"flags & {FOREIGN_RUN} != 0"


class Phantom:
    anomaly: ClassVar[str] = "phantom"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("LOGGED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {
        Space.MESSAGE: Why.NOBODYS,
        Space.POSITION: Why.NOBODYS | Why.FLAGGED | Why.OBSERVED,
    }

    def find(self, tables: Tables) -> DataFrame:
        nobodys = tables.named(tables.messages.where("NOT attempted")).selectExpr(*finding(
            self.anomaly,
            offsets=known("offset_min"), topic="coalesce(topic_min, 0)", partition="partition_min", t="NULL",
            evidence={"origin": "'no attempt'", "in_log": "in_log", "delivered": "delivered"},
        ))  # fmt: skip
        foreign = tables.positions.where(_FOREIGN).selectExpr(*finding(
            self.anomaly,
            messages="array()", sender="NULL", t="t_seen",
            evidence={"origin": "'another run'", "in_log": "in_log", "delivered": "delivered"},
        ))  # fmt: skip
        return nobodys.unionByName(foreign)

    def explain(self, row: Mapping[str, Any]) -> str:
        if (row.get("evidence") or {}).get("origin") == "another run":
            return f"A record in {place(row)} is intact but was sent by another run. Nobody of this run attempted it."
        return (
            f"{first(row)} was found in {place(row)}. It claims to come from {row.get('sender')}, "
            "which never attempted it."
        )


finder_class = Phantom
