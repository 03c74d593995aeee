"""corrupted: the payload's checksum, key, headers or timestamp are not what was sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.ledger.message import BAD_HEADER, BAD_KEY, BAD_PAYLOAD, BAD_TIMESTAMP
from harness.reconcile.find.findings import LEDGER, finding, place, sql
from harness.reconcile.find.tables import MessageTables, PositionTables
from harness.reconcile.screen.spaces import Space, Why

_BAD = {"payload": BAD_PAYLOAD, "key": BAD_KEY, "header": BAD_HEADER, "timestamp": BAD_TIMESTAMP}
# Intact by its own checksum, but not what the ledger says was sent under this id.
_ALTERED = "attempted AND altered"


class Corrupted:
    anomaly: ClassVar[str] = "corrupted"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("LOG_ROWS", "DELIVERIES")
    woken_by: ClassVar[Mapping[Space, Why]] = {
        Space.MESSAGE: Why.CONTENT,
        Space.POSITION: Why.CONTENT | Why.FLAGGED | Why.OBSERVED,
    }

    def of_positions(self, tables: PositionTables) -> pl.DataFrame:
        flags = pl.col("flags")
        harmed = tables.positions.filter((flags & sum(_BAD.values())) != 0)
        what = [pl.when((flags & bit) != 0).then(pl.lit(name)) for name, bit in _BAD.items()]
        # The ack of this position names the sender, or a reader that could read the record.
        return finding(
            tables.known.named(harmed), self.anomaly,
            t="t_seen",
            evidence={
                "bad": pl.concat_str(what, separator=",", ignore_nulls=True), "in_log": "in_log", "delivered": "delivered",
            },
        )  # fmt: skip

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        altered = tables.messages.filter(sql(_ALTERED))
        return finding(
            tables.known.named(altered), self.anomaly,
            offsets=["offset_min"], topic="coalesce(topic_min, 0)", partition="partition_min",
            evidence={"bad": "'key or transaction'", "in_log": "in_log", "delivered": "delivered"},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        whose = ", ".join(row.get("messages") or []) or "An unknown message"
        return (
            f"{whose} from {row.get('sender') or 'an unknown sender'} is in {place(row)}. "
            f"What arrived is not what was sent: its {(row.get('evidence') or {}).get('bad')} differs."
        )


finder_class = Corrupted
