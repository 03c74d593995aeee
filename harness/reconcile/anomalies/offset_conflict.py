"""offset_conflict: one position is claimed by two different messages, by acks, deliveries or final reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.findings import count, finding, place, when
from harness.reconcile.tables import POSITION, Tables, message_id


class OffsetConflict:
    anomaly = "offset_conflict"

    def find(self, tables: Tables) -> DataFrame:
        different = (f.col("session_min") != f.col("session_max")) | (f.col("seq_min") != f.col("seq_max"))
        contested = tables.positions.where(different).select(*POSITION)
        claims = tables.claims.join(f.broadcast(contested), on=POSITION, how="inner")
        claimants = (
            tables.named(claims)
            .groupBy(*POSITION)
            .agg(
                f.sort_array(f.collect_set(message_id())).alias("claimants"),
                f.sort_array(f.collect_set(f.concat_ws(" by ", message_id(), f.col("source")))).alias("said"),
                f.min_by("sender", "t").alias("sender"),
                f.min("t").alias("t"),
            )
        )
        return claimants.select(*finding(
            self.anomaly,
            messages=f.col("claimants"), offsets=f.array("offset"),
            topic=f.col("topic"), partition=f.col("partition"), sender=f.col("sender"), t=f.col("t"),
            evidence={"claims": f.array_join("said", "; ")},
        ))  # fmt: skip

    def compared(self, tables: Tables) -> DataFrame:
        return count(tables.positions.where(f.col("session_min").isNotNull()))

    def explain(self, row: Mapping[str, Any]) -> str:
        claims = (row.get("evidence") or {}).get("claims", "")
        return (
            f"{place(row)} is claimed by {' and '.join(row.get('messages') or [])}, first {when(row)}. "
            f"The claims are: {claims}."
        )


finder_class = OffsetConflict
