"""missing_effect: an input whose effect does not stand in the output, by provenance, although its group has passed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import PIPELINE, finding, first
from harness.reconcile.by_queries.provenance import ORIGIN
from harness.reconcile.by_queries.tables import Tables


class MissingEffect:
    anomaly: ClassVar[str] = "missing_effect"
    asked_of: ClassVar[tuple[str, ...]] = (PIPELINE,)
    compared: ClassVar[tuple[str, ...]] = ("INPUTS",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.EFFECT: Why.MISSING}

    def find(self, tables: Tables) -> DataFrame:
        assert tables.inputs is not None
        assert tables.effects is not None
        found = tables.effects.groupBy(*ORIGIN).agg(f.expr("collect_set(number) AS found"))
        inputs = tables.inputs.selectExpr(
            "run",
            "effects",
            *(f"{name.removeprefix('origin_')} AS {name}" for name in ORIGIN if name != "run"),
        )
        # Spelled as longs on both sides: numbers of effects are compared as a set.
        missing = inputs.join(found, on=ORIGIN, how="left").selectExpr(
            "*",
            "array_except(transform(sequence(1, greatest(effects, 1)), n -> CAST(n - 1 AS bigint)), "
            "coalesce(found, CAST(array() AS array<bigint>))) AS missing",
        )
        told = tables.named(missing.where("effects > 0 AND size(missing) > 0"), session="origin_session")
        return told.selectExpr(*finding(
            self.anomaly,
            messages="array(sender || '-' || origin_seq)", offsets="array(origin_offset)",
            topic="origin_topic", partition="origin_partition", t="NULL",
            evidence={"effects": "effects", "missing": "array_join(missing, ',')"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        at = next(iter(row.get("offsets") or []), None)
        return (
            f"Input {first(row)} in {row['topic']}/{row['partition']} at offset {at} was passed by its group and has "
            f"{evidence.get('effects')} effect(s), of which number {evidence.get('missing')} stands nowhere in the output."
        )


finder_class = MissingEffect
