"""What must be in the log and is not, and why: lost, or excused by E8 as expired or late."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.findings import finding, known
from harness.reconcile.look import PARTITION
from harness.reconcile.tables import Tables

LOST, EXPIRED, LATE = "lost", "expired", "late"

NOT_THERE = "owed AND NOT visible"

# It stands in the log behind a transaction that is still open: a read_committed reader will get it later. An acked
# offset alone is no proof of that: a log cut back by a failover ends below the acks it gave.
_BEHIND_OPEN = "in_log AND offset_min >= stable"
_BELOW_START = "acked_offset < start"


def classed(tables: Tables) -> DataFrame:
    """Owed messages that are not in the log that is owed, each with its kind: lost, expired or late."""
    gone = tables.messages.where(NOT_THERE).selectExpr(
        "*", "intended_topic AS topic",
        "coalesce(acked_partition, partition_min, CASE WHEN intended_partition >= 0 THEN intended_partition END) AS partition",
    )  # fmt: skip
    return gone.join(f.broadcast(tables.bounds), on=PARTITION, how="left").selectExpr(
        "*",
        f"CASE WHEN {_BELOW_START} THEN '{EXPIRED}' WHEN {_BEHIND_OPEN} THEN '{LATE}' ELSE '{LOST}' END AS kind",
    )


def missing(tables: Tables, kind: str) -> DataFrame:
    """Findings of one kind."""
    return tables.named(classed(tables).where(f"kind = '{kind}'")).selectExpr(*finding(
        kind,
        offsets=known("coalesce(acked_offset, offset_min)"), t="coalesce(t_outcome, t)",
        evidence={
            "t_attempt": "t", "t_outcome": "t_outcome", "outcome": "outcome", "txn": "txn", "fate": "fate",
            # In the log as of a transaction that was aborted: readers of read_committed pass over it.
            "hidden_at": "CASE WHEN in_log THEN offset_min END",
            "log_start": "start", "log_end": "end", "last_stable": "stable",
        },
    ))  # fmt: skip
