"""lost: acked, or in a committed transaction, and in no place of the log, without an excuse of E8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.findings import count, first, when
from harness.reconcile.missing import LOST, missing, missing_findings
from harness.reconcile.tables import Tables


class Lost:
    anomaly = "lost"

    def find(self, tables: Tables) -> DataFrame:
        return missing_findings(tables, missing(tables).where(f.col("class") == LOST), self.anomaly)

    def compared(self, tables: Tables) -> DataFrame:
        return count(tables.messages.where(f.col("owed")))

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        if row.get("offsets"):
            told = f"acked it as {row['topic']}/{row['partition']} offset {row['offsets'][0]}"
        elif evidence.get("fate"):
            told = f"its transaction {evidence.get('txn')} is {evidence['fate']}"
        else:
            told = "reported success without a position"
        return (
            f"{row.get('sender')} sent {first(row)} {when(row)} and was promised it: the cluster {told}. "
            "The final reader found it nowhere in the log."
        )


finder_class = Lost
