"""aborted_read: a reader got a record of a transaction that was certainly aborted or rejected.

A read_committed reader must not. What a group that chose read_uncommitted got is excused by that choice: it
is found and counted all the same, with the excuse `read_uncommitted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.findings import count, finding, first, place, when
from harness.reconcile.tables import ABORTED, TRANSACTION, Tables, message_id, ours


class AbortedRead:
    anomaly = "aborted_read"

    def find(self, tables: Tables) -> DataFrame:
        aborted = tables.fates.where(f.col("fate") == ABORTED).select(*TRANSACTION)
        got = (
            _read(tables)
            .join(f.broadcast(aborted), on=TRANSACTION, how="left_semi")
            .groupBy("run", "session", "seq", "txn", "topic", "partition", "offset", "reader", "isolation")
            .agg(f.min("t").alias("t"), f.count(f.lit(1)).alias("times"))
        )
        return tables.named(got).select(*finding(
            self.anomaly,
            messages=f.array(message_id()), offsets=f.array("offset"),
            topic=f.col("topic"), partition=f.col("partition"),
            sender=f.col("sender"), reader=f.col("reader"), t=f.col("t"),
            excuse=f.when(f.col("isolation") == "read_uncommitted", "read_uncommitted"),
            evidence={"txn": f.col("txn"), "isolation": f.col("isolation"), "times": f.col("times")},
        ))  # fmt: skip

    def compared(self, tables: Tables) -> DataFrame:
        return count(_read(tables))

    def explain(self, row: Mapping[str, Any]) -> str:
        evidence = row.get("evidence") or {}
        return (
            f"{row.get('reader')} ({evidence.get('isolation')}) got {first(row)} from {place(row)} {when(row)}. "
            f"It belongs to transaction {evidence.get('txn')} of {row.get('sender')}, which was certainly not committed."
        )


def _read(tables: Tables) -> DataFrame:
    """Records of transactions as the group and the final read_committed reader got them."""
    columns = ["run", "session", "seq", "txn", "topic", "partition", "offset", "reader", "t"]
    mine = ours() & (f.col("txn") > 0)
    isolation = tables.runs.select("run", f.col("group_isolation").alias("isolation"))
    given = tables.deliveries.where(mine).select(*columns).join(f.broadcast(isolation), on="run", how="inner")
    final = tables.log.where(mine & (f.col("isolation") == "read_committed")).select(*columns, "isolation")
    return given.unionByName(final)


finder_class = AbortedRead
