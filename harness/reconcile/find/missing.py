"""Owed messages that are not in the log, and why: lost, excused by E8 as expired or late, or not to be judged."""

from __future__ import annotations

import polars as pl

from harness.reconcile.find.findings import finding, sql
from harness.reconcile.find.known import Known
from harness.reconcile.find.tables import PARTITION, MessageTables
from harness.reconcile.screen.transaction_fates import TRANSACTION

LOST, EXPIRED, LATE = "lost", "expired", "late"
NOT_ASKED = "not asked"  # its partition was not read whole (E11)
UNPLACED = "unplaced"  # its position is not known, and older records of its partition were deleted

_NOT_THERE = "owed AND NOT visible"
_WHERE = "coalesce(acked_partition, partition_min, seen_partition, CASE WHEN intended_partition >= 0 THEN intended_partition END)"

# It is in the log behind a transaction that is still open: a read_committed reader will get it later. An acked offset alone
# does not prove that: a log that a failover has truncated ends below acked offsets.
_BEHIND_OPEN = "in_log AND offset_min >= stable"
# A delivery proves a position as well as an ack does.
_BELOW_START = "acked_offset < start OR acked_offset IS NULL AND seen_below"
_UNPLACED = "acked_offset IS NULL AND seen_offset IS NULL AND NOT in_log AND start > 0"
_KIND = (
    f"CASE WHEN NOT asked THEN '{NOT_ASKED}' WHEN {_BELOW_START} THEN '{EXPIRED}' WHEN {_BEHIND_OPEN} THEN '{LATE}' "
    f"WHEN {_UNPLACED} THEN '{UNPLACED}' ELSE '{LOST}' END"
)


def classed(messages: pl.DataFrame, bounds: pl.DataFrame) -> pl.DataFrame:
    """Return the owed messages that are not in the log that is owed, each with its kind."""
    gone = messages.filter(sql(_NOT_THERE)).with_columns(
        pl.col("intended_topic").alias("topic"), sql(_WHERE).alias("partition")
    )
    # A message that may be in any partition is judged only if all partitions of its topic were read.
    topics = bounds.group_by("run", "topic").agg(
        pl.col("whole").all().alias("all_whole"), pl.col("start").max().alias("latest_start")
    )
    placed = gone.join(bounds, on=PARTITION, how="left").join(topics, on=["run", "topic"], how="left")
    read = placed.with_columns(
        sql("CASE WHEN partition IS NULL THEN latest_start ELSE start END").alias("start"),
        sql("CASE WHEN partition IS NULL THEN all_whole ELSE whole END").fill_null(False).alias("asked"),
    )
    return read.with_columns(sql(_KIND).alias("kind"))


def missing(tables: MessageTables, kind: str) -> pl.DataFrame:
    """Return the findings of one kind."""
    known = tables.known
    of_kind = tables.missing.filter(pl.col("kind") == kind)
    at = (
        "coalesce(acked_offset, offset_min, seen_offset)"
        if kind == EXPIRED
        else "coalesce(acked_offset, offset_min)"
    )
    return finding(
        known.named(of_kind), kind,
        offsets=[at], t="coalesce(t_outcome, t)",
        evidence={
            "t_attempt": "t", "t_outcome": "t_outcome", "outcome": "outcome", "txn": "txn", "fate": "fate",
            # In the log, in a transaction that was aborted: read_committed readers do not get it.
            "hidden_at": "CASE WHEN in_log THEN offset_min END",
            "log_start": "start", "log_end": pl.col("end"), "last_stable": "stable",
        },
    )  # fmt: skip


def unjudged(missing: pl.DataFrame, known: Known) -> pl.DataFrame:
    """Count the owed messages that could not be judged: run, kind, n, and session, seq and sender of the first."""
    gone = missing.filter(pl.col("kind").is_in([NOT_ASKED, UNPLACED]))
    return known.named(gone).sort("session", "seq").group_by("run", "kind").agg(
        pl.len().cast(pl.Int64).alias("n"), pl.col("session", "seq", "sender").first()
    )  # fmt: skip


def gone_of(missing: pl.DataFrame, known: Known) -> pl.DataFrame:
    """Return the lost records of transactions, as in TransactionTables."""
    lost = missing.filter(sql(f"kind = '{LOST}' AND txn > 0"))
    return known.named(lost).select(
        *TRANSACTION,
        "seq",
        "sender",
        "topic",
        "partition",
        "acked_offset",
        sql("coalesce(t_outcome, t)").alias("t"),
    )
