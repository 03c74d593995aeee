"""redelivered: one position was delivered to (processed by) the group more than once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.findings import count, finding, known, place, when
from harness.reconcile.tables import POSITION, Tables, message_id


class Redelivered:
    anomaly = "redelivered"

    def find(self, tables: Tables) -> DataFrame:
        again = tables.positions.where(f.col("delivered") > 1).select(
            *POSITION, "delivered", f.col("session_min").alias("session"), f.col("seq_min").alias("seq"),
            "t_first", "t_last",
        )  # fmt: skip
        readers = (
            tables.deliveries.join(f.broadcast(again.select(*POSITION)), on=POSITION, how="left_semi")
            .groupBy(*POSITION)
            .agg(f.sort_array(f.collect_list(f.struct("t", "reader"))).alias("times"))
        )
        return tables.named(again.join(readers, on=POSITION, how="left")).select(*finding(
            self.anomaly,
            messages=known(message_id()), offsets=f.array("offset"),
            topic=f.col("topic"), partition=f.col("partition"), sender=f.col("sender"),
            reader=f.element_at("times.reader", -1), t=f.col("t_last"),
            evidence={"times": f.col("delivered"), "readers": f.array_join("times.reader", ","),
                      "seconds_between": (f.col("t_last") - f.col("t_first")) / 1e9},
        ))  # fmt: skip

    def compared(self, tables: Tables) -> DataFrame:
        return count(tables.positions.where(f.col("delivered") > 0))

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        whose = ", ".join(row.get("messages") or []) or "A record"
        return (
            f"{whose} in {place(row)} was given to the group {evidence.get('times')} times, by {evidence.get('readers')}. "
            f"The last time was {when(row)}."
        )


finder_class = Redelivered
