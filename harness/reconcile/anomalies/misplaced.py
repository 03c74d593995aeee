"""misplaced: a message in another topic or partition than intended, or one key in several partitions.

The key rule needs a topic whose number of partitions did not change, and asks only about messages whose
partition was left to the client: a sender that names partitions may spread a key as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.findings import count, finding, first, when
from harness.reconcile.tables import MESSAGE, Tables, message_id


class Misplaced:
    anomaly = "misplaced"

    def find(self, tables: Tables) -> DataFrame:
        return self._elsewhere(tables).unionByName(self._split_keys(tables))

    def _elsewhere(self, tables: Tables) -> DataFrame:
        named_partition = f.col("intended_partition") >= 0
        other_partition = named_partition & (
            (f.col("partition_min") != f.col("intended_partition"))
            | (f.col("partition_max") != f.col("intended_partition"))
        )
        other_topic = (f.col("topic_min") != f.col("intended_topic")) | (f.col("topic_max") != f.col("intended_topic"))
        # Of two places the wrong one is shown.
        wrong = f.when(f.col("partition_min") != f.col("intended_partition"), f.col("partition_min"))
        found = tables.messages.where(f.col("attempted") & f.col("in_log") & (other_partition | other_topic))
        return tables.named(found).select(*finding(
            self.anomaly,
            messages=f.array(message_id()), offsets=f.array("offset_min"),
            topic=f.col("topic_min"), partition=f.coalesce(wrong, f.col("partition_max")),
            sender=f.col("sender"), t=f.col("t"),
            evidence={"rule": f.lit("intended place"), "intended_partition": f.col("intended_partition"),
                      "intended_topic": f.col("intended_topic")},
        ))  # fmt: skip

    def _split_keys(self, tables: Tables) -> DataFrame:
        unchanged = f.broadcast(tables.runs.where(f.col("topic_unchanged")).select("run"))
        in_partition = (
            _keyed(tables)
            .join(unchanged, on="run", how="left_semi")
            .groupBy("run", "topic_min", "key", "partition_min")
            .agg(f.min(f.struct("offset_min", "session", "seq", "t")).alias("first"), f.count(f.lit(1)).alias("n"))
        )
        split = (
            in_partition.groupBy("run", "topic_min", "key")
            .agg(f.sort_array(f.collect_list(f.struct("partition_min", "first", "n"))).alias("places"))
            .where(f.size("places") > 1)
            .withColumns({
                "session": f.col("places")[0]["first"]["session"], "seq": f.col("places")[0]["first"]["seq"],
                "session_2": f.col("places")[1]["first"]["session"], "seq_2": f.col("places")[1]["first"]["seq"],
            })
        )  # fmt: skip
        both = tables.named(tables.named(split), session="session_2", sender="sender_2")
        return both.select(*finding(
            self.anomaly,
            messages=f.array(message_id(), message_id("sender_2", "seq_2")),
            offsets=f.col("places.first.offset_min"),
            topic=f.col("topic_min"), partition=f.col("places")[1]["partition_min"], sender=f.col("sender_2"),
            t=f.col("places")[1]["first"]["t"],
            evidence={"rule": f.lit("one key, one partition"), "key": f.col("key"),
                      "partitions": f.array_join(f.col("places.partition_min").cast("array<string>"), ","),
                      "records": f.array_join(f.col("places.n").cast("array<string>"), ",")},
        ))  # fmt: skip

    def compared(self, tables: Tables) -> DataFrame:
        placed = tables.messages.where(f.col("attempted") & f.col("in_log") & (f.col("intended_partition") >= 0))
        return count(placed.select(*MESSAGE).unionByName(_keyed(tables).select(*MESSAGE)))

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        if evidence.get("rule") == "one key, one partition":
            return (
                f"Messages with key k{evidence.get('key')} stand in partitions {evidence.get('partitions')} of "
                f"{row['topic']}, whose number of partitions did not change. The first of each are "
                f"{' and '.join(row.get('messages') or [])}, sent {when(row)}."
            )
        return (
            f"{row.get('sender')} sent {first(row)} {when(row)} to partition {evidence.get('intended_partition')}. "
            f"It stands in {row['topic']}/{row['partition']}."
        )


def _keyed(tables: Tables) -> DataFrame:
    """Messages with a key that the client found a partition for, and that stand in one partition."""
    by_key = (f.col("key") >= 0) & (f.col("intended_partition") < 0)
    return tables.messages.where(
        f.col("attempted") & f.col("in_log") & by_key & (f.col("partition_min") == f.col("partition_max"))
    )


finder_class = Misplaced
