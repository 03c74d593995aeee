"""double_effect: an input whose effect stands in the output more than once, by provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import PIPELINE, finding
from harness.reconcile.by_queries.provenance import ORIGIN
from harness.reconcile.by_queries.tables import Tables


class DoubleEffect:
    anomaly: ClassVar[str] = "double_effect"
    asked_of: ClassVar[tuple[str, ...]] = (PIPELINE,)
    compared: ClassVar[tuple[str, ...]] = ("EFFECTS",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.EFFECT: Why.REPEATED}

    def find(self, tables: Tables) -> DataFrame:
        """One finding for each effect of an input that stands there more than once; one that was copied by a retry of
        the producer (the same message at two offsets) is `duplicated` instead."""
        assert tables.effects is not None
        made = tables.named(
            tables.effects.where("late = 0")
            .groupBy(*ORIGIN, "number", "session", "seq")
            .agg(
                *map(f.expr, ("min(topic) AS topic", "min(partition) AS partition", "min(offset) AS offset"))
            )
        )
        again = made.groupBy(*ORIGIN, "number").agg(
            f.expr(
                "sort_array(collect_list(struct(topic, partition, offset, session, seq, sender))) AS copies"
            )
        )
        origins = tables.named(
            again.where("size(copies) > 1").withColumn("t", f.expr("CAST(NULL AS bigint)")),
            session="origin_session", sender="origin_sender",
        )  # fmt: skip
        return origins.selectExpr(*finding(
            self.anomaly,
            messages="concat(array(origin_sender || '-' || origin_seq), transform(copies, c -> c.sender || '-' || c.seq))",
            offsets="copies.offset", topic="copies[0].topic", partition="copies[0].partition",
            sender="copies[1].sender",
            evidence={
                "input": "origin_partition || '@' || origin_offset", "effect": "number", "times": "size(copies)",
                "places": "array_join(transform(copies, c -> c.topic || '/' || c.partition || '@' || c.offset), ',')",
            },
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence, (source, *copies) = row.get("evidence") or {}, row.get("messages") or ["an input"]
        return (
            f"Input {source} (partition {str(evidence.get('input')).replace('@', ', offset ')}) took effect "
            f"{evidence.get('times')} times: its effect {evidence.get('effect')} is {' and '.join(copies)}."
        )


finder_class = DoubleEffect
