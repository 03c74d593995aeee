"""late: owed, and excused: it stands in the log at or above the last stable offset (E8). Counted, never forbidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.findings import count, first, when
from harness.reconcile.missing import LATE, missing, missing_findings
from harness.reconcile.tables import Tables


class Late:
    anomaly = "late"

    def find(self, tables: Tables) -> DataFrame:
        return missing_findings(tables, missing(tables).where(f.col("class") == LATE), self.anomaly)

    def compared(self, tables: Tables) -> DataFrame:
        return count(tables.messages.where(f.col("owed")))

    def explain(self, row: Mapping[str, Any]) -> str:
        known = row.get("evidence") or {}
        offset = next(iter(row.get("offsets") or []), "unknown")
        return (
            f"{row.get('sender')} sent {first(row)} {when(row)} in a committed transaction. It stands at offset {offset} "
            f"of partition {row.get('partition')}, behind the last stable offset {known.get('last_stable')}: late, not lost."
        )


finder_class = Late
