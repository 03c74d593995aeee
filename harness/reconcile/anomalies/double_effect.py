"""double_effect: an effect of an input is in the output more than once, by provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import PIPELINE, finding, sql
from harness.reconcile.find.tables import ORIGIN, PositionTables
from harness.reconcile.screen.spaces import Space, Why


class DoubleEffect:
    anomaly: ClassVar[str] = "double_effect"
    asked_of: ClassVar[tuple[str, ...]] = (PIPELINE,)
    compared: ClassVar[tuple[str, ...]] = ("EFFECTS",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.EFFECT: Why.REPEATED}

    def of_positions(self, tables: PositionTables) -> pl.DataFrame:
        """Return a finding for each effect that several messages made. The same message at two offsets, copied by a retry
        of the producer, is `duplicated` instead."""
        first = [pl.col(name).min() for name in ("topic", "partition", "offset")]
        made = (
            tables.effects.filter(pl.col("late") == 0)
            .group_by(*ORIGIN, "number", "session", "seq")
            .agg(first)
        )
        copies = tables.known.named(made).sort("topic", "partition", "offset", "session", "seq")
        again = copies.group_by(*ORIGIN, "number").agg(
            pl.col("topic").first(),
            pl.col("partition").first(),
            pl.col("offset").alias("offsets"),
            sql("sender || '-' || seq").alias("copies"),
            pl.col("sender").get(1, null_on_oob=True),
            pl.format("{}/{}@{}", "topic", "partition", "offset").alias("places"),
        ).filter(pl.col("copies").list.len() > 1)  # fmt: skip
        return finding(
            tables.known.named(again, "origin_session", "origin_sender"), self.anomaly,
            messages=pl.concat_list(sql("origin_sender || '-' || origin_seq"), "copies"), offsets=pl.col("offsets"),
            t="NULL",
            evidence={
                "input": "origin_partition || '@' || origin_offset", "effect": pl.col("number"),
                "times": pl.col("copies").list.len(), "places": pl.col("places").list.join(","),
            },
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence, (source, *copies) = row.get("evidence") or {}, row.get("messages") or ["an input"]
        return (
            f"Input {source} (partition {str(evidence.get('input')).replace('@', ', offset ')}) took effect "
            f"{evidence.get('times')} times: its effect {evidence.get('effect')} is {' and '.join(copies)}."
        )


finder_class = DoubleEffect
