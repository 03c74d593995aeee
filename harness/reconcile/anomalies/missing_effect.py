"""missing_effect: an effect of an input that its group has passed is not in the output, by provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import PIPELINE, finding, first
from harness.reconcile.find.tables import ORIGIN, PositionTables
from harness.reconcile.screen.spaces import Space, Why


class MissingEffect:
    anomaly: ClassVar[str] = "missing_effect"
    asked_of: ClassVar[tuple[str, ...]] = (PIPELINE,)
    compared: ClassVar[tuple[str, ...]] = ("INPUTS",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.EFFECT: Why.MISSING}

    def of_positions(self, tables: PositionTables) -> pl.DataFrame:
        inputs = tables.inputs.rename(
            {name.removeprefix("origin_"): name for name in ORIGIN if name != "run"}
        )
        # An input with three effects owes the numbers 0, 1 and 2.
        owed = inputs.with_columns(number=pl.int_ranges(pl.col("effects"))).explode(
            "number", empty_as_null=False
        )
        found = tables.effects.select(*ORIGIN, "number")
        missing = owed.join(found, on=[*ORIGIN, "number"], how="anti").sort("number")
        by_input = missing.group_by(*ORIGIN, "effects").agg(
            pl.col("number").cast(pl.String).str.join(",").alias("missing")
        )
        return finding(
            tables.known.named(by_input, "origin_session"), self.anomaly,
            messages=["sender || '-' || origin_seq"], offsets=["origin_offset"],
            topic="origin_topic", partition="origin_partition", t="NULL",
            evidence={"effects": "effects", "missing": "missing"},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        at = next(iter(row.get("offsets") or []), None)
        return (
            f"Input {first(row)} in {row['topic']}/{row['partition']} at offset {at} was passed by its group and has "
            f"{evidence.get('effects')} effect(s), of which number {evidence.get('missing')} is nowhere in the output."
        )


finder_class = MissingEffect
