"""torn: some records of a committed transaction are visible, and others, whose places were passed, are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import LEDGER, finding, when
from harness.reconcile.by_queries.missing import LOST, classed
from harness.reconcile.by_queries.tables import Tables
from harness.reconcile.fates import TRANSACTION


class Torn:
    anomaly: ClassVar[str] = "torn"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("READ_IN_TXN",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.MISSING | Why.OPEN_TXN}

    def find(self, tables: Tables) -> DataFrame:
        gone = (
            tables.named(classed(tables).where(f"kind = '{LOST}' AND txn > 0"))
            .groupBy(*TRANSACTION, "sender")
            .agg(*map(f.expr, (
                "sort_array(collect_list(struct(seq, acked_offset, partition, topic))) AS gone",
                "min(coalesce(t_outcome, t)) AS t",
            )))
        )  # fmt: skip
        # The rest of the transaction may stand in sound blocks: it is looked for in the whole log.
        return gone.join(tables.rest_of(gone), on=TRANSACTION, how="inner").selectExpr(*finding(
            self.anomaly,
            messages="transform(gone.seq, s -> sender || '-' || s)", offsets="array_compact(gone.acked_offset)",
            topic="gone[0].topic", partition="gone[0].partition",
            evidence={"txn": "txn", "visible": "there", "missing": "size(gone)"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        return (
            f"Transaction {evidence.get('txn')} of {row.get('sender')}, {when(row)}, is committed: {evidence.get('visible')} "
            f"of its records are visible to read_committed readers and {evidence.get('missing')} are not, among them "
            f"{row['messages'][0]} in {row['topic']}/{row['partition']}."
        )


finder_class = Torn
