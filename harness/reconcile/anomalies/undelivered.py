"""undelivered: in the log, below the group's committed offset or the drained end, and never delivered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.findings import count, finding, first, known, place, when
from harness.reconcile.tables import PARTITION, Tables, message_id


class Undelivered:
    anomaly = "undelivered"

    def find(self, tables: Tables) -> DataFrame:
        passed_over = _answered_for(tables).where(f.col("delivered") == 0)
        times = tables.messages.where(f.col("delivered") == 0).select("run", "session", "seq", "t", "t_outcome")
        sent = passed_over.withColumnsRenamed({"session_min": "session", "seq_min": "seq"}).join(
            times, on=["run", "session", "seq"], how="left"
        )
        return tables.named(sent).select(*finding(
            self.anomaly,
            messages=known(message_id()), offsets=f.array("offset"),
            topic=f.col("topic"), partition=f.col("partition"), sender=f.col("sender"),
            t=f.coalesce("t_outcome", "t"),
            evidence={"reach": f.col("reach"), "acked": f.col("acked")},
        ))  # fmt: skip

    def compared(self, tables: Tables) -> DataFrame:
        return count(_answered_for(tables))

    def explain(self, row: Mapping[str, Any]) -> str:
        reach = (row.get("evidence") or {}).get("reach")
        return (
            f"{first(row)} from {row.get('sender')}, written {when(row)}, stands in {place(row)}. The group has "
            f"committed or drained up to offset {reach} there and was never given it."
        )


def _answered_for(tables: Tables) -> DataFrame:
    """Positions of the log as the group reads it that lie below what the group has passed."""
    kind = tables.runs.select("run", (f.col("group_isolation") == "read_committed").alias("strict"))
    readable = f.when(f.col("strict"), f.col("in_committed")).otherwise(f.col("in_log"))
    return (
        tables.positions.join(f.broadcast(kind), on="run", how="inner")
        .where(readable)
        .join(f.broadcast(tables.reach), on=PARTITION, how="inner")
        .where(f.col("offset") < f.col("reach"))
    )


finder_class = Undelivered
