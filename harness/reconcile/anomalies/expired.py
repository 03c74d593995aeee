"""expired: owed, and below the log start offset: deleted by retention or DeleteRecords (E8). Counted, never forbidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import LEDGER, first, when
from harness.reconcile.find.missing import EXPIRED, missing
from harness.reconcile.find.tables import MessageTables
from harness.reconcile.screen.spaces import Space, Why


class Expired:
    anomaly: ClassVar[str] = EXPIRED
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("OWED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.MISSING | Why.OPEN_TXN}

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        return missing(tables, EXPIRED)

    def explain(self, row: Mapping[str, Any]) -> str:
        start = (row.get("evidence") or {}).get("log_start")
        return (
            f"{row.get('sender')} sent {first(row)}, acked {when(row)} as offset {row['offsets'][0]} of "
            f"{row['topic']}/{row['partition']}. The log starts at {start} now: it was deleted, not lost."
        )


finder_class = Expired
