"""offset_conflict: one position is claimed by two different messages, by acks, deliveries or final reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import HISTORY, ID, LEDGER, finding, place, sql, when
from harness.reconcile.find.tables import POSITION, PositionTables
from harness.reconcile.screen.spaces import Space, Why


class OffsetConflict:
    anomaly: ClassVar[str] = "offset_conflict"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("CLAIMED", "LOG_ROWS", "DELIVERIES")
    # The log has one record at each position. If two messages claim a position, the log does not have at least one of
    # them there.
    woken_by: ClassVar[Mapping[Space, Why]] = {
        Space.MESSAGE: Why.PLACE,
        Space.POSITION: Why.PLACE | Why.CONTENT | Why.UNEXPECTED | Why.OBSERVED,
    }

    def of_positions(self, tables: PositionTables) -> pl.DataFrame:
        contested = tables.positions.filter("contested").select(POSITION)
        claims = tables.known.named(tables.claims.join(contested, on=POSITION, how="semi")).with_columns(
            sql(ID).alias("id"), sql(f"{ID} || ' by ' || source").alias("said")
        )
        claimants = claims.sort("t").group_by(POSITION).agg(
            pl.col("id").unique().sort().alias("claimants"), pl.col("said").unique().sort(),
            pl.col("sender").filter(pl.col("t").is_not_null()).first(), pl.col("t").min(),
        )  # fmt: skip
        return finding(
            claimants,
            self.anomaly,
            messages=pl.col("claimants"),
            evidence={"claims": pl.col("said").list.join("; ")},
        )

    def explain(self, row: Mapping[str, Any]) -> str:
        claims = (row.get("evidence") or {}).get("claims", "")
        return (
            f"{place(row)} is claimed by {' and '.join(row.get('messages') or [])}, first {when(row)}. "
            f"The claims are: {claims}."
        )


finder_class = OffsetConflict
