"""late: owed, and at or above the last stable offset of the log (E8). Counted, never forbidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import LEDGER, first, place, when
from harness.reconcile.find.missing import LATE, missing
from harness.reconcile.find.tables import MessageTables
from harness.reconcile.screen.spaces import Space, Why


class Late:
    anomaly: ClassVar[str] = LATE
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("OWED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.MISSING | Why.OPEN_TXN}

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        return missing(tables, LATE)

    def explain(self, row: Mapping[str, Any]) -> str:
        stable = (row.get("evidence") or {}).get("last_stable")
        return (
            f"{row.get('sender')} sent {first(row)} {when(row)} in a committed transaction; it is in {place(row)}. "
            f"The last stable offset is {stable}, below it: read_committed readers will get it later."
        )


finder_class = Late
