"""read_cycle: transactions order each other in a cycle with at least one write that another one read (G1c)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.cycles import cycles, edges_of, findings_of
from harness.reconcile.find.findings import HISTORY
from harness.reconcile.find.tables import HistoryTables
from harness.reconcile.screen.spaces import Space, Why


class ReadCycle:
    anomaly: ClassVar[str] = "read_cycle"
    asked_of: ClassVar[tuple[str, ...]] = (HISTORY,)
    compared: ClassVar[tuple[str, ...]] = ()
    woken_by: ClassVar[Mapping[Space, Why]] = {}

    def of_history(self, tables: HistoryTables) -> pl.DataFrame:
        found = {
            run: list(cycles([*edges["ww"], *edges["wr"]], must_use=edges["wr"]))
            for run, edges in edges_of(tables.edges).items()
        }
        return findings_of(self.anomaly, found)

    def explain(self, row: Mapping[str, Any]) -> str:
        operations = (row.get("evidence") or {}).get("operations", "")
        return f"Operations {operations} depend on each other in a cycle: each wrote what the next one read or wrote over."


finder_class = ReadCycle
