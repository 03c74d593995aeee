"""corrupted: the payload's checksum, key, headers or timestamp are not what was sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.message import BAD_HEADER, BAD_KEY, BAD_PAYLOAD, BAD_TIMESTAMP
from harness.reconcile.findings import count, finding, known, place
from harness.reconcile.tables import Tables, message_id

_BAD = {"payload": BAD_PAYLOAD, "key": BAD_KEY, "header": BAD_HEADER, "timestamp": BAD_TIMESTAMP}


class Corrupted:
    anomaly = "corrupted"

    def find(self, tables: Tables) -> DataFrame:
        anything = f.col("flags").bitwiseAND(sum(_BAD.values())) != 0
        what = f.concat_ws(",", *(f.when(f.col("flags").bitwiseAND(b) != 0, name) for name, b in _BAD.items()))
        # Who sent it is known from the ack of this position, or from somebody who could read it.
        harmed = tables.positions.where(anything).withColumnsRenamed({"session_min": "session", "seq_min": "seq"})
        damaged = tables.named(harmed).select(*finding(
            self.anomaly,
            messages=known(message_id()), offsets=f.array("offset"),
            topic=f.col("topic"), partition=f.col("partition"), sender=f.col("sender"), t=f.col("t_first"),
            evidence={"bad": what, "in_log": f.col("in_log"), "delivered": f.col("delivered")},
        ))  # fmt: skip
        # Intact by its own checksum, but not what the ledger says was sent under this id.
        altered = tables.named(tables.messages.where(f.col("attempted") & f.col("altered"))).select(*finding(
            self.anomaly,
            messages=f.array(message_id()), offsets=known(f.col("offset_min")),
            topic=f.coalesce("topic_min", f.lit(0)), partition=f.col("partition_min"),
            sender=f.col("sender"), t=f.col("t"),
            evidence={"bad": f.lit("key or transaction"), "in_log": f.col("in_log"), "delivered": f.col("delivered")},
        ))  # fmt: skip
        return damaged.unionByName(altered)

    def compared(self, tables: Tables) -> DataFrame:
        return count(tables.positions.where(f.col("in_log") | (f.col("delivered") > 0)))

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        whose = ", ".join(row.get("messages") or []) or "An unknown message"
        return (
            f"{whose} from {row.get('sender') or 'an unknown sender'} stands in {place(row)}. "
            f"What arrived is not what was sent: its {evidence.get('bad')} differs."
        )


finder_class = Corrupted
