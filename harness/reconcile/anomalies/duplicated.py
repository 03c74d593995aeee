"""duplicated: one message at two or more offsets of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.findings import count, finding, first, when
from harness.reconcile.tables import MESSAGE, Tables, message_id


class Duplicated:
    anomaly = "duplicated"

    def find(self, tables: Tables) -> DataFrame:
        elsewhere = (
            (f.col("offset_min") != f.col("offset_max"))
            | (f.col("partition_min") != f.col("partition_max"))
            | (f.col("topic_min") != f.col("topic_max"))
        )
        twice = tables.messages.where(f.col("in_log") & elsewhere).select(*MESSAGE, f.col("t").alias("sent"), "outcome")
        copies = (
            tables.claims.where(f.col("source").isin("read_uncommitted", "read_committed"))
            .join(f.broadcast(twice), on=MESSAGE, how="inner")
            .groupBy(*MESSAGE, "sent", "outcome")
            .agg(f.sort_array(f.collect_set(f.struct("topic", "partition", "offset"))).alias("places"))
        )
        return tables.named(copies).select(*finding(
            self.anomaly,
            messages=f.array(message_id()), offsets=f.col("places.offset"),
            topic=f.col("places")[0]["topic"], partition=f.col("places")[0]["partition"],
            sender=f.col("sender"), t=f.col("sent"),
            evidence={"copies": f.size("places"), "outcome": f.col("outcome"),
                      "partitions": f.array_join(f.col("places.partition").cast("array<string>"), ",")},
        ))  # fmt: skip

    def compared(self, tables: Tables) -> DataFrame:
        return count(tables.messages.where(f.col("in_log")))

    def explain(self, row: Mapping[str, Any]) -> str:
        offsets = ", ".join(map(str, row.get("offsets") or []))
        return (
            f"{row.get('sender')} sent {first(row)} once, {when(row)}. It stands {len(row.get('offsets') or [])} times "
            f"in {row['topic']}, first in partition {row['partition']}, at offsets {offsets}."
        )


finder_class = Duplicated
