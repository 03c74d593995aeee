"""offset_conflict: one position is claimed by two different messages, by acks, deliveries or final reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import HISTORY, ID, LEDGER, finding, place, when
from harness.reconcile.by_queries.tables import POSITION, Tables

_DIFFERENT = "session_min != session_max OR seq_min != seq_max"


class OffsetConflict:
    anomaly: ClassVar[str] = "offset_conflict"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("CLAIMED", "LOG_ROWS", "DELIVERIES")
    # The log holds one record a position. Where two messages claim one, at least one of them is claimed to stand
    # where the log has it not.
    woken_by: ClassVar[Mapping[Space, Why]] = {
        Space.MESSAGE: Why.PLACE,
        Space.POSITION: Why.PLACE | Why.CONTENT | Why.NOBODYS | Why.OBSERVED,
    }

    def find(self, tables: Tables) -> DataFrame:
        contested = tables.positions.where(_DIFFERENT).select(*POSITION)
        claims = tables.named(tables.claims.join(f.broadcast(contested), on=POSITION, how="inner"))
        claimants = claims.groupBy(*POSITION).agg(*map(f.expr, (
            f"sort_array(collect_set({ID})) AS claimants",
            f"array_join(sort_array(collect_set({ID} || ' by ' || source)), '; ') AS said",
            "min_by(sender, t) AS sender", "min(t) AS t",
        )))  # fmt: skip
        return claimants.selectExpr(*finding(self.anomaly, messages="claimants", evidence={"claims": "said"}))

    def explain(self, row: Mapping[str, Any]) -> str:
        claims = (row.get("evidence") or {}).get("claims", "")
        return (
            f"{place(row)} is claimed by {' and '.join(row.get('messages') or [])}, first {when(row)}. "
            f"The claims are: {claims}."
        )


finder_class = OffsetConflict
