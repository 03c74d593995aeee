"""misplaced: a message in another topic or partition than intended, or one key in several partitions.

The key rule needs a topic whose number of partitions did not change, and asks only about messages whose
partition was left to the client: a sender that names partitions may spread a key as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import ID, LEDGER, finding, first, when
from harness.reconcile.by_queries.tables import MESSAGE, Tables

_PLACED = "attempted AND (in_log OR in_committed)"
_ELSEWHERE = (
    "attempted AND (topic_min != intended_topic OR topic_max != intended_topic OR intended_partition >= 0 "
    "AND (partition_min != intended_partition OR partition_max != intended_partition))"
)
_SPLIT = "partition_min != partition_max"


class Misplaced:
    anomaly: ClassVar[str] = "misplaced"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("PLACED", "KEYED")
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.MISPLACED, Space.KEY: Why.MISPLACED}

    def find(self, tables: Tables) -> DataFrame:
        # Of two places the wrong one is shown.
        wrong = "CASE WHEN partition_min != intended_partition THEN partition_min ELSE partition_max END"
        elsewhere = tables.named(tables.messages.where(_ELSEWHERE)).selectExpr(*finding(
            self.anomaly,
            offsets="array(offset_min)", topic="topic_min", partition=wrong,
            evidence={"rule": "'intended place'", "intended_partition": "intended_partition",
                      "intended_topic": "intended_topic"},
        ))  # fmt: skip
        return elsewhere.unionByName(self._split_keys(tables))

    def _split_keys(self, tables: Tables) -> DataFrame:
        """One finding a key, with the first message of each of its partitions."""
        split = tables.keys.where(_SPLIT).selectExpr("run", "topic AS topic_min", "key")
        keyed = tables.messages.where(f"{_PLACED} AND intended_partition < 0").join(
            f.broadcast(split), on=["run", "topic_min", "key"], how="left_semi"
        )
        # One message may stand in several partitions: its places count, not the message.
        in_partition = (
            tables.named(keyed.select(*MESSAGE, "key", "t").join(tables.places, on=MESSAGE, how="inner"))
            .groupBy("run", "topic", "key", "partition")
            .agg(*map(f.expr, (f"min(struct(offset, {ID} AS id, sender, t)) AS first", "count(1) AS n")))
        )
        places = in_partition.groupBy("run", "topic", "key").agg(
            f.expr("sort_array(collect_list(struct(partition, first, n))) AS places")
        )
        return places.selectExpr(*finding(
            self.anomaly,
            messages="places.first.id", offsets="places.first.offset", partition="places[1].partition",
            sender="places[1].first.sender", t="places[1].first.t",
            evidence={"rule": "'one key, one partition'", "key": "key",
                      "partitions": "array_join(places.partition, ',')", "records": "array_join(places.n, ',')"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        if evidence.get("rule") == "one key, one partition":
            return (
                f"Messages with key k{evidence.get('key')} stand in partitions {evidence.get('partitions')} of "
                f"{row['topic']}, whose number of partitions did not change. The first of each are "
                f"{' and '.join(row.get('messages') or [])}, the second one sent {when(row)}."
            )
        return (
            f"{row.get('sender')} sent {first(row)} {when(row)} to partition {evidence.get('intended_partition')}. "
            f"It stands in {row['topic']}/{row['partition']}."
        )


finder_class = Misplaced
