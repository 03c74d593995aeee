"""overcommitted: a committed offset beyond what the group had been given at that time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.blocks import Space, Why
from harness.reconcile.by_queries.findings import LEDGER, finding, when
from harness.reconcile.by_queries.look import PARTITION
from harness.reconcile.by_queries.tables import Tables

TOLD_AT_MOST = 10  # of the records that were not given yet


class Overcommitted:
    anomaly: ClassVar[str] = "overcommitted"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("COMMITS",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.GIVEN: Why.MISSING}

    def find(self, tables: Tables) -> DataFrame:
        commits = tables.overcommits.withColumnRenamed("offset", "commit_offset").join(
            f.broadcast(tables.bounds), on=PARTITION, how="left"
        )
        unread = (
            tables.named(tables.readable)
            .join(f.broadcast(commits), on=PARTITION, how="inner")
            .where("offset < commit_offset AND offset >= coalesce(given, 0)")
            .groupBy(*PARTITION, "reader", "t", "commit_offset", "given", "start")
            .agg(f.expr("sort_array(collect_list(struct(offset, sender || '-' || seq AS id))) AS unread"))
        )
        return tables.read_by(unread).selectExpr(*finding(
            self.anomaly,
            messages=f"array_compact(slice(unread, 1, {TOLD_AT_MOST}).id)",
            offsets="array(commit_offset, coalesce(given, start, 0))", sender="NULL", reader="reader",
            evidence={"not_given": "size(unread)"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        committed, given = row["offsets"]
        return (
            f"{row.get('reader')} committed offset {committed} of {row['topic']}/{row['partition']} {when(row)}. The group "
            f"had been given records below offset {given} only: "
            f"{(row.get('evidence') or {}).get('not_given')} would be lost if all its members died now."
        )


finder_class = Overcommitted
