"""redelivered: one position was delivered to (processed by) the group more than once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import LEDGER, finding, place, seconds, sql, when
from harness.reconcile.find.tables import POSITION, PositionTables
from harness.reconcile.screen.spaces import Space, Why


class Redelivered:
    anomaly: ClassVar[str] = "redelivered"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("DELIVERED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.POSITION: Why.REPEATED}

    def of_positions(self, tables: PositionTables) -> pl.DataFrame:
        again = tables.positions.filter(sql("delivered > 1"))
        to_group = tables.deliveries.filter(sql("NOT observes")).sort("t", "reader_name")
        readers = to_group.group_by(POSITION).agg(pl.col("reader_name").alias("readers"))
        return finding(
            tables.known.named(again.join(readers, on=POSITION, how="inner")), self.anomaly,
            reader=pl.col("readers").list.last(), t="t_last",
            evidence={"times": "delivered", "readers": pl.col("readers").list.join(","),
                      "seconds_between": seconds("t_last - t_first", 3)},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        whose = ", ".join(row.get("messages") or []) or "A record"
        return (
            f"{whose} in {place(row)} was given to the group {evidence.get('times')} times, by {evidence.get('readers')}. "
            f"The last time was {when(row)}."
        )


finder_class = Redelivered
