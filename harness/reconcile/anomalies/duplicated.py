"""duplicated: one message at two or more offsets of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import HISTORY, LEDGER, finding, first, sql, when
from harness.reconcile.find.tables import MESSAGE, MessageTables
from harness.reconcile.screen.spaces import Space, Why

_ELSEWHERE = "offset_min != offset_max OR partition_min != partition_max OR topic_min != topic_max"


class Duplicated:
    anomaly: ClassVar[str] = "duplicated"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("LOGGED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.REPEATED}

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        twice = tables.messages.filter(sql(_ELSEWHERE)).select(*MESSAGE, "t", "outcome")
        places = tables.places.sort("topic", "partition", "offset").join(twice, on=MESSAGE, how="inner")
        copies = places.group_by(*MESSAGE, "t", "outcome").agg(
            pl.col("topic").first(), pl.col("partition").first(), pl.col("partition").alias("partitions"),
            pl.col("offset").alias("offsets"),
        )  # fmt: skip
        return finding(
            tables.known.named(copies), self.anomaly,
            offsets=pl.col("offsets"),
            evidence={
                "copies": pl.col("offsets").list.len(), "outcome": "outcome",
                "partitions": pl.col("partitions").cast(pl.List(pl.String)).list.join(","),
            },
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        offsets = row.get("offsets") or []
        return (
            f"{row.get('sender')} sent {first(row)} once, {when(row)}. It is {len(offsets)} times in {row['topic']}, "
            f"first in partition {row['partition']}, at offsets {', '.join(map(str, offsets))}."
        )


finder_class = Duplicated
