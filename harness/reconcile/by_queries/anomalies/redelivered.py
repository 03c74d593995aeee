"""redelivered: one position was delivered to (processed by) the group more than once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import ID, LEDGER, finding, known, place, when
from harness.reconcile.by_queries.tables import POSITION, Tables

_AGAIN = "delivered > 1"


class Redelivered:
    anomaly: ClassVar[str] = "redelivered"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("DELIVERED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.POSITION: Why.REPEATED}

    def find(self, tables: Tables) -> DataFrame:
        again = tables.positions.where(_AGAIN).selectExpr("*", "holder.*")
        readers = (
            tables.read_by(tables.to_group())
            .groupBy(*POSITION)
            .agg(f.expr("sort_array(collect_list(struct(t, reader))).reader AS readers"))
        )
        return tables.named(again.join(readers, on=POSITION, how="inner")).selectExpr(*finding(
            self.anomaly,
            messages=known(ID), reader="element_at(readers, -1)", t="t_last",
            evidence={"times": "delivered", "readers": "array_join(readers, ',')",
                      "seconds_between": "round((t_last - t_first) / 1e9, 3)"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        whose = ", ".join(row.get("messages") or []) or "A record"
        return (
            f"{whose} in {place(row)} was given to the group {evidence.get('times')} times, by {evidence.get('readers')}. "
            f"The last time was {when(row)}."
        )


finder_class = Redelivered
