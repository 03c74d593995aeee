"""reordered: a message stands in its partition behind one that its producer session sent later.

First occurrences are compared: a late copy of a message is `duplicated`, not reordered. Messages that nobody
attempted are left out (one phantom with a high number would accuse thousands), and so are those in several
partitions, which are findings already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame

from harness.reconcile.blocks import Space, Why
from harness.reconcile.findings import finding, when
from harness.reconcile.tables import Tables

_BEHIND = "ahead > seq"


class Reordered:
    anomaly: ClassVar[str] = "reordered"
    compared: ClassVar[tuple[str, ...]] = ("LOGGED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {
        Space.MESSAGE: Why.OVERTAKEN,
        Space.RUN_OF_ORDER: Why.OVERTAKEN,
    }

    def find(self, tables: Tables) -> DataFrame:
        ahead = tables.order.selectExpr(
            "run", "session", "topic", "partition", "seq AS ahead", "offset AS ahead_offset"
        )
        pairs = tables.order.where(_BEHIND).join(
            ahead, on=["run", "session", "topic", "partition", "ahead"], how="inner"
        )
        return tables.named(pairs).selectExpr(*finding(
            self.anomaly,
            messages="array(sender || '-' || ahead, sender || '-' || seq)", offsets="array(ahead_offset, offset)",
            evidence={"overtaken_by": "ahead - seq"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        ahead, behind = row["messages"]
        before, after = row["offsets"]
        return (
            f"{row.get('sender')} sent {behind} {when(row)}, before {ahead}. In {row['topic']}/{row['partition']} they "
            f"stand the other way round: {ahead} at offset {before}, {behind} at offset {after}."
        )


finder_class = Reordered
