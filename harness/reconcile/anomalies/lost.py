"""lost: acked, or in a committed transaction, and in no place of the log, without an excuse of E8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import HISTORY, LEDGER, first, when
from harness.reconcile.find.missing import LOST, missing
from harness.reconcile.find.tables import MessageTables
from harness.reconcile.screen.spaces import Space, Why


class Lost:
    anomaly: ClassVar[str] = LOST
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("OWED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.MESSAGE: Why.MISSING | Why.OPEN_TXN}

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        return missing(tables, LOST)

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        if evidence.get("fate"):
            reported = f"its transaction {evidence.get('txn')} is {evidence['fate']}"
        elif row.get("offsets"):
            reported = f"it was acked as {row['topic']}/{row['partition']} offset {row['offsets'][0]}"
        else:
            reported = "its success was reported, without a position"
        return f"{row.get('sender')} sent {first(row)}, and {reported}, {when(row)}. {_where(evidence)}."


def _where(evidence: Mapping[str, Any]) -> str:
    if (hidden_at := evidence.get("hidden_at")) is not None:
        return f"It is in the log at offset {hidden_at} as aborted: read_committed readers do not get it"
    found = evidence.get("replicas")
    looked = f"it is {found}" if found else "the replicas' logs were not looked at for it"
    return f"The final reader found it nowhere in the log; {looked}"


finder_class = Lost
