"""phantom: in the log or delivered, but attempted by nobody in this run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.message import FOREIGN_RUN
from harness.reconcile.findings import count, finding, first, known, place
from harness.reconcile.tables import Tables, message_id


class Phantom:
    anomaly = "phantom"

    def find(self, tables: Tables) -> DataFrame:
        nobodys = tables.named(tables.messages.where(~f.col("attempted"))).select(*finding(
            self.anomaly,
            messages=f.array(message_id()), offsets=known(f.col("offset_min")),
            topic=f.coalesce("topic_min", f.lit(0)), partition=f.col("partition_min"),
            sender=f.col("sender"), t=f.lit(None),
            evidence={"origin": f.lit("no attempt"), "in_log": f.col("in_log"), "delivered": f.col("delivered")},
        ))  # fmt: skip
        foreign = tables.positions.where(f.col("flags").bitwiseAND(FOREIGN_RUN) != 0).select(*finding(
            self.anomaly,
            messages=f.array(), offsets=f.array("offset"), topic=f.col("topic"), partition=f.col("partition"),
            t=f.col("t_first"),
            evidence={"origin": f.lit("another run"), "in_log": f.col("in_log"), "delivered": f.col("delivered")},
        ))  # fmt: skip
        return nobodys.unionByName(foreign)

    def compared(self, tables: Tables) -> DataFrame:
        return count(tables.messages.where(f.col("in_log") | (f.col("delivered") > 0)))

    def explain(self, row: Mapping[str, Any]) -> str:
        if (row.get("evidence") or {}).get("origin") == "another run":
            return f"A record in {place(row)} is intact but was sent by another run. Nobody of this run attempted it."
        return (
            f"{first(row)} was found in {place(row)}. It claims to come from {row.get('sender')}, "
            "which never attempted it."
        )


finder_class = Phantom
