"""overcommitted: a committed offset beyond what the group had been given at that time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import LEDGER, finding, when
from harness.reconcile.find.tables import PARTITION, StepTables, between
from harness.reconcile.screen.spaces import Space, Why

LISTED_AT_MOST = 10  # records that the group had not been given yet


class Overcommitted:
    anomaly: ClassVar[str] = "overcommitted"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("COMMITS",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.GIVEN: Why.MISSING}

    def of_steps(self, tables: StepTables) -> pl.DataFrame:
        starts = tables.known.bounds.select(*PARTITION, "start")
        commits = tables.overcommits.join(starts, on=PARTITION, how="left").with_columns(
            pl.col("given").fill_null(0).alias("unread_from")
        )
        unread = between(commits, tables.readable_named(), "unread_from", "offset", LISTED_AT_MOST)
        return finding(
            unread, self.anomaly,
            messages=pl.col("between_ids"), offsets=["offset", pl.coalesce("given", "start", 0)], sender="NULL",
            reader="reader_name", evidence={"not_given": "n"},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        committed, given = row["offsets"]
        return (
            f"{row.get('reader')} committed offset {committed} of {row['topic']}/{row['partition']} {when(row)}. The group "
            f"had been given records below offset {given} only: "
            f"{(row.get('evidence') or {}).get('not_given')} would be lost if all its members died now."
        )


finder_class = Overcommitted
