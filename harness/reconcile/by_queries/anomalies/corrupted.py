"""corrupted: the payload's checksum, key, headers or timestamp are not what was sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame

from harness.message import BAD_HEADER, BAD_KEY, BAD_PAYLOAD, BAD_TIMESTAMP
from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import ID, LEDGER, finding, known, place
from harness.reconcile.by_queries.tables import Tables

_BAD = {"payload": BAD_PAYLOAD, "key": BAD_KEY, "header": BAD_HEADER, "timestamp": BAD_TIMESTAMP}
_HARMED = f"flags & {sum(_BAD.values())} != 0"
# Intact by its own checksum, but not what the ledger says was sent under this id.
_ALTERED = "attempted AND altered"
_WHAT = ", ".join(f"CASE WHEN flags & {bit} != 0 THEN '{name}' END" for name, bit in _BAD.items())


class Corrupted:
    anomaly: ClassVar[str] = "corrupted"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("LOG_ROWS", "DELIVERIES")
    woken_by: ClassVar[Mapping[Space, Why]] = {
        Space.MESSAGE: Why.CONTENT,
        Space.POSITION: Why.CONTENT | Why.FLAGGED | Why.OBSERVED,
    }

    def find(self, tables: Tables) -> DataFrame:
        # Who sent it is known from the ack of this position, or from somebody who could read it.
        harmed = tables.positions.where(_HARMED).selectExpr("*", "holder.*")
        damaged = tables.named(harmed).selectExpr(*finding(
            self.anomaly,
            messages=known(ID), t="t_seen",
            evidence={"bad": f"concat_ws(',', {_WHAT})", "in_log": "in_log", "delivered": "delivered"},
        ))  # fmt: skip
        altered = tables.named(tables.messages.where(_ALTERED)).selectExpr(*finding(
            self.anomaly,
            offsets=known("offset_min"), topic="coalesce(topic_min, 0)", partition="partition_min",
            evidence={"bad": "'key or transaction'", "in_log": "in_log", "delivered": "delivered"},
        ))  # fmt: skip
        return damaged.unionByName(altered)

    def explain(self, row: Mapping[str, Any]) -> str:
        whose = ", ".join(row.get("messages") or []) or "An unknown message"
        return (
            f"{whose} from {row.get('sender') or 'an unknown sender'} stands in {place(row)}. "
            f"What arrived is not what was sent: its {(row.get('evidence') or {}).get('bad')} differs."
        )


finder_class = Corrupted
