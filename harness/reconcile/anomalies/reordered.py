"""reordered: a message stands in its partition behind one that its producer session sent later.

First occurrences are compared: a late copy of a message is `duplicated`, not reordered. Messages that nobody
attempted are left out (one phantom with a high number would accuse thousands), and so are those in several
partitions, which are findings already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from harness.reconcile.findings import count, finding, when
from harness.reconcile.tables import MESSAGE, Tables, message_id


class Reordered:
    anomaly = "reordered"

    def find(self, tables: Tables) -> DataFrame:
        in_log_order = (
            Window.partitionBy("run", "session", "topic", "partition")
            .orderBy("offset")
            .rowsBetween(Window.unboundedPreceding, -1)
        )
        ahead = f.max(f.struct("seq", "offset")).over(in_log_order)
        behind = (
            _in_order(tables)
            .select(*MESSAGE, "topic", "partition", "offset", "t", ahead.alias("ahead"))
            .where(f.col("ahead.seq") > f.col("seq"))
            .withColumn("ahead_seq", f.col("ahead.seq"))
        )
        return tables.named(behind).select(*finding(
            self.anomaly,
            messages=f.array(message_id(seq="ahead_seq"), message_id()),
            offsets=f.array("ahead.offset", "offset"),
            topic=f.col("topic"), partition=f.col("partition"), sender=f.col("sender"), t=f.col("t"),
            evidence={"overtaken_by": f.col("ahead_seq") - f.col("seq")},
        ))  # fmt: skip

    def compared(self, tables: Tables) -> DataFrame:
        return count(_in_order(tables))

    def explain(self, row: Mapping[str, Any]) -> str:
        ahead, behind = (row.get("messages") or ["?", "?"])[:2]
        before, after = (row.get("offsets") or ["?", "?"])[:2]
        return (
            f"{row.get('sender')} sent {behind} {when(row)}, before {ahead}. In {row['topic']}/{row['partition']} they "
            f"stand the other way round: {ahead} at offset {before}, {behind} at offset {after}."
        )


def _in_order(tables: Tables) -> DataFrame:
    """Attempted messages with the one place where they first stand."""
    one_partition = (f.col("partition_min") == f.col("partition_max")) & (f.col("topic_min") == f.col("topic_max"))
    return tables.messages.where(f.col("attempted") & f.col("in_log") & one_partition).select(
        *MESSAGE, "t", f.col("topic_min").alias("topic"), f.col("partition_min").alias("partition"),
        f.col("offset_min").alias("offset"),
    )  # fmt: skip


finder_class = Reordered
