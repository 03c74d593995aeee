"""skipped: a reader jumped forward over records known to exist, and no rebalance excuses it (E5-E7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import HISTORY, LEDGER, STEP_ENDS, STEP_MESSAGES, finding, when
from harness.reconcile.by_queries.look import PARTITION
from harness.reconcile.by_queries.tables import Tables

TOLD_AT_MOST = 100  # of those left out, in a ledger; there may be millions

_FORWARD = "to_offset > from_offset AND NOT excused"


class Skipped:
    anomaly: ClassVar[str] = "skipped"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("STEPS",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.POSITION: Why.JUMPED, Space.READING: Why.JUMPED}

    def find(self, tables: Tables) -> DataFrame:
        there = tables.named(tables.readable.withColumnRenamed("offset", "missed"))
        jumps = tables.steps.where(_FORWARD).withColumn("step", f.monotonically_increasing_id())
        ends = ["step", "reader", "scope", *STEP_ENDS]
        missed = (
            there.join(f.broadcast(jumps), on=PARTITION, how="inner")
            .where("missed > from_offset AND missed < to_offset")
            .groupBy(*PARTITION, *ends)
            .agg(f.expr("sort_array(collect_set(struct(missed, sender || '-' || seq AS id))) AS left_out"))
        )
        told = missed if tables.tells_all else missed.selectExpr(
            *PARTITION, *ends, f"slice(left_out, 1, {TOLD_AT_MOST}) AS left_out", "size(left_out) AS n"
        )  # fmt: skip
        told = told if "n" in told.columns else told.withColumn("n", f.expr("size(left_out)"))
        ended = tables.named(
            tables.named(tables.read_by(told), session="from_session", sender="from_sender"),
            session="to_session", sender="sender",
        )  # fmt: skip
        return ended.selectExpr(*finding(
            self.anomaly,
            messages=f"concat({STEP_MESSAGES}, array_compact(left_out.id))",
            offsets="concat(array(from_offset, to_offset), left_out.missed)", reader="reader", t="to_t",
            evidence={"scope": "scope", "left_out": "n", "from_t": "from_t", "to_t": "to_t"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        before, after = row["offsets"][:2]
        return (
            f"{row.get('reader')} got offset {before} and next offset {after} of {row['topic']}/{row['partition']}, "
            f"{when(row)}. It left out {evidence.get('left_out')} records that are there, the first at offset "
            f"{row['offsets'][2]}, and no rebalance excuses the jump ({evidence.get('scope')} polls)."
        )


finder_class = Skipped
