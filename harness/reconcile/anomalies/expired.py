"""expired: owed, and excused: its place is below the log start offset: retention or DeleteRecords took it (E8). Counted, never forbidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.findings import count, first, when
from harness.reconcile.missing import EXPIRED, missing, missing_findings
from harness.reconcile.tables import Tables


class Expired:
    anomaly = "expired"

    def find(self, tables: Tables) -> DataFrame:
        return missing_findings(tables, missing(tables).where(f.col("class") == EXPIRED), self.anomaly)

    def compared(self, tables: Tables) -> DataFrame:
        return count(tables.messages.where(f.col("owed")))

    def explain(self, row: Mapping[str, Any]) -> str:
        known = row.get("evidence") or {}
        offset = next(iter(row.get("offsets") or []), "unknown")
        return (
            f"{row.get('sender')} sent {first(row)} {when(row)} and was promised it. Its place, offset {offset} of "
            f"partition {row.get('partition')}, is below the log start {known.get('log_start')}: it was deleted, not lost."
        )


finder_class = Expired
