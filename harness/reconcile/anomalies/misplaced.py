"""misplaced: a message in another topic or partition than intended, or one key in several partitions.

The key rule needs a topic whose number of partitions did not change, and asks only about messages whose
partition was left to the client: a sender that names partitions may spread a key as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import ID, LEDGER, finding, first, sql, when
from harness.reconcile.find.tables import KeyTables, MessageTables
from harness.reconcile.screen.spaces import Space, Why

_ELSEWHERE = (
    "attempted AND (topic_min != intended_topic OR topic_max != intended_topic OR intended_partition >= 0 "
    "AND (partition_min != intended_partition OR partition_max != intended_partition))"
)


class Misplaced:
    anomaly: ClassVar[str] = "misplaced"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("PLACED", "KEYED")
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.MISPLACED, Space.KEY: Why.MISPLACED}

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        # If it is in two places, the finding shows the wrong one.
        wrong = "CASE WHEN partition_min != intended_partition THEN partition_min ELSE partition_max END"
        return finding(
            tables.known.named(tables.messages.filter(sql(_ELSEWHERE))), self.anomaly,
            offsets=["offset_min"], topic="topic_min", partition=wrong,
            evidence={"rule": "'intended place'", "intended_partition": "intended_partition",
                      "intended_topic": "intended_topic"},
        )  # fmt: skip

    def of_keys(self, tables: KeyTables) -> pl.DataFrame:
        """Return one finding for each key, with the first message in each of its partitions."""
        unchanged = tables.known.runs.filter("unchanged").select("run")
        ends = tables.keyed.join(unchanged, on="run", how="semi").group_by("run", "topic", "key").agg(
            pl.col("partition_min").min(), pl.col("partition_max").max()
        )  # fmt: skip
        split = ends.filter(sql("partition_min != partition_max")).rename({"topic": "key_topic"})
        # One message may be in several partitions: its places count, not the message.
        places = tables.places.join(split, on=["run", "key_topic", "key"], how="semi")
        in_partition = (
            places.with_columns(sql(ID).alias("id"))
            .sort("offset", "id", "sender", "t")
            .group_by("run", "topic", "key", "partition")
            .agg(pl.col("offset", "id", "sender", "t").first(), pl.len().alias("n"))
        )
        listed = in_partition.sort("partition").group_by("run", "topic", "key").agg(
            pl.col("id").alias("ids"), pl.col("offset").alias("offsets"),
            pl.col("partition", "sender", "t").get(1, null_on_oob=True),
            pl.col("partition").cast(pl.String).str.join(",").alias("partitions"),
            pl.col("n").cast(pl.String).str.join(",").alias("records"),
        )  # fmt: skip
        return finding(
            listed, self.anomaly,
            messages=pl.col("ids"), offsets=pl.col("offsets"),
            evidence={"rule": "'one key, one partition'", "key": pl.col("key"), "partitions": "partitions", "records": "records"},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        if evidence.get("rule") == "one key, one partition":
            return (
                f"Messages with key k{evidence.get('key')} are in partitions {evidence.get('partitions')} of "
                f"{row['topic']}, whose number of partitions did not change. The first of each are "
                f"{' and '.join(row.get('messages') or [])}, the second one sent {when(row)}."
            )
        return (
            f"{row.get('sender')} sent {first(row)} {when(row)} to partition {evidence.get('intended_partition')}. "
            f"It is in {row['topic']}/{row['partition']}."
        )


finder_class = Misplaced
