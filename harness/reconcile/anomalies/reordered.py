"""reordered: a message is behind one in its partition that its producer session sent later.

First occurrences are compared: a late copy of a message is `duplicated`, not reordered. Messages without an attempt are
left out (one phantom with a high number would accuse thousands), and so are messages in several partitions, which are
findings already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import HISTORY, LEDGER, finding, sql, when
from harness.reconcile.find.tables import OrderTables
from harness.reconcile.screen.spaces import Space, Why

_OPPOSITE = "first_offset > second_offset"


class Reordered:
    anomaly: ClassVar[str] = "reordered"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("LOGGED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {
        Space.MESSAGE: Why.OVERTAKEN,
        Space.RUN_OF_ORDER: Why.OVERTAKEN,
    }

    def of_order(self, tables: OrderTables) -> pl.DataFrame:
        return finding(
            tables.known.named(tables.pairs.filter(sql(_OPPOSITE))), self.anomaly,
            messages=["sender || '-' || first_seq", "sender || '-' || second_seq"],
            offsets=["first_offset", "second_offset"],
            evidence={"overtaken_by": "second_seq - first_seq", "scope": pl.col("scope")},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        first, second = row["messages"]
        after, before = row["offsets"]
        return (
            f"{row.get('sender')} sent {first} {when(row)}, before {second}. In {row['topic']}/{row['partition']} they "
            f"are the other way round: {second} at offset {before}, {first} at offset {after}."
        )


finder_class = Reordered
