"""duplicated: one message at two or more offsets of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import HISTORY, LEDGER, finding, first, when
from harness.reconcile.by_queries.tables import MESSAGE, Tables

_ELSEWHERE = "offset_min != offset_max OR partition_min != partition_max OR topic_min != topic_max"


class Duplicated:
    anomaly: ClassVar[str] = "duplicated"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("LOGGED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.REPEATED}

    def find(self, tables: Tables) -> DataFrame:
        twice = tables.messages.where(_ELSEWHERE).selectExpr(*MESSAGE, "t AS sent", "outcome")
        copies = (
            tables.places.join(f.broadcast(twice), on=MESSAGE, how="inner")
            .groupBy(*MESSAGE, "sent", "outcome")
            .agg(f.expr("sort_array(collect_set(struct(topic, partition, offset))) AS places"))
        )
        return tables.named(copies).selectExpr(*finding(
            self.anomaly,
            offsets="places.offset", topic="places[0].topic", partition="places[0].partition", t="sent",
            evidence={"copies": "size(places)", "outcome": "outcome", "partitions": "array_join(places.partition, ',')"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        offsets = row.get("offsets") or []
        return (
            f"{row.get('sender')} sent {first(row)} once, {when(row)}. It stands {len(offsets)} times in {row['topic']}, "
            f"first in partition {row['partition']}, at offsets {', '.join(map(str, offsets))}."
        )


finder_class = Duplicated
