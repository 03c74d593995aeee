"""skipped: a reader jumped forward over records known to exist, and no rebalance excuses it (E5-E7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import HISTORY, LEDGER, STEP_MESSAGES, finding, sql, when
from harness.reconcile.find.tables import POSITION, StepTables, between
from harness.reconcile.screen.spaces import Space, Why

LISTED_AT_MOST = 100  # records left out, in a ledger; there may be millions

_FORWARD = "to_offset > from_offset AND NOT excused"


class Skipped:
    anomaly: ClassVar[str] = "skipped"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("STEPS",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.POSITION: Why.JUMPED, Space.READING: Why.JUMPED}

    def of_steps(self, tables: StepTables) -> pl.DataFrame:
        there = tables.readable_named().unique([*POSITION, "id"])
        jumps = tables.steps_named(_FORWARD).with_columns(after=pl.col("from_offset") + 1)
        missed = between(jumps, there, "after", "to_offset", None if tables.list_all else LISTED_AT_MOST)
        ends = pl.concat_list(sql(text) for text in STEP_MESSAGES).list.drop_nulls()
        return finding(
            missed, self.anomaly,
            messages=pl.concat_list(ends, "between_ids"),
            offsets=pl.concat_list("from_offset", "to_offset", "between_offsets"), reader="reader_name", t="to_t",
            evidence={"scope": pl.col("scope"), "left_out": "n", "from_t": "from_t", "to_t": "to_t"},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        before, after = row["offsets"][:2]
        return (
            f"{row.get('reader')} got offset {before} and next offset {after} of {row['topic']}/{row['partition']}, "
            f"{when(row)}. It left out {evidence.get('left_out')} records that are there, the first at offset "
            f"{row['offsets'][2]}, and no rebalance excuses the jump ({evidence.get('scope')} polls)."
        )


finder_class = Skipped
