"""Owed messages that are not in the log, and why: lost, excused by E8 as expired or late, or not to be judged."""

from __future__ import annotations

import polars as pl

from harness.reconcile.fates import TRANSACTION
from harness.reconcile.find.findings import ID, finding
from harness.reconcile.find.sql import sql
from harness.reconcile.find.tables import PARTITION, Known, MessageTables

LOST, EXPIRED, LATE = "lost", "expired", "late"
NOT_ASKED = "not asked"  # its partition was not read whole (E11)
UNPLACED = "unplaced"  # its position is not known, and older records of its partition were deleted

_NOT_THERE = "owed AND NOT visible"
_WHERE = "coalesce(acked_partition, partition_min, seen_partition, CASE WHEN intended_partition >= 0 THEN intended_partition END)"

# It stands in the log behind a transaction that is still open: a read_committed reader will get it later. An acked
# offset alone is no proof of that: a log cut back by a failover ends below the acks it gave.
_BEHIND_OPEN = "in_log AND offset_min >= stable"
# What a reader got tells its position as well as an ack does.
_BELOW_START = "acked_offset < start OR acked_offset IS NULL AND seen_below"
_UNPLACED = "acked_offset IS NULL AND seen_offset IS NULL AND NOT in_log AND start > 0"
_KIND = (
    f"CASE WHEN NOT asked THEN '{NOT_ASKED}' WHEN {_BELOW_START} THEN '{EXPIRED}' WHEN {_BEHIND_OPEN} THEN '{LATE}' "
    f"WHEN {_UNPLACED} THEN '{UNPLACED}' ELSE '{LOST}' END"
)


def classed(messages: pl.DataFrame, bounds: pl.DataFrame) -> pl.DataFrame:
    """Owed messages that are not in the log that is owed, each with its kind."""
    gone = messages.filter(sql(_NOT_THERE)).with_columns(
        pl.col("intended_topic").alias("topic"), sql(_WHERE).alias("partition")
    )
    # A message that may be in any partition is asked about when all of its topic were read.
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
    """Findings of one kind."""
    known = tables.known
    of_kind = classed(tables.messages, known.bounds).filter(pl.col("kind") == kind)
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
            # In the log as of a transaction that was aborted: readers of read_committed pass over it.
            "hidden_at": "CASE WHEN in_log THEN offset_min END",
            "log_start": "start", "log_end": pl.col("end"), "last_stable": "stable",
        },
    )  # fmt: skip


def unjudged(messages: pl.DataFrame, known: Known) -> pl.DataFrame:
    """run, kind, sender, session, seq of owed messages that could not be judged."""
    gone = classed(messages, known.bounds)
    return known.named(gone.filter(pl.col("kind").is_in([NOT_ASKED, UNPLACED]))).select(
        "run", "kind", "sender", "session", "seq"
    )


def gone_of(messages: pl.DataFrame, known: Known) -> pl.DataFrame:
    """Transactions with lost records, as in TransactionTables."""
    lost = classed(messages, known.bounds).filter(sql(f"kind = '{LOST}' AND txn > 0")).sort("seq")
    return known.named(lost).group_by(*TRANSACTION, "sender").agg(
        sql(ID).alias("ids"),
        pl.col("acked_offset").drop_nulls().alias("offsets"),
        pl.col("topic", "partition", "seq").first(),
        pl.len().cast(pl.Int64).alias("missing"),
        sql("coalesce(t_outcome, t)").min().alias("t"),
    )  # fmt: skip


def joined_gone(gone: pl.DataFrame) -> pl.DataFrame:
    """One row a transaction: its records may have been in several shares."""
    return gone.sort("seq").group_by(*TRANSACTION, "sender").agg(
        pl.col("ids", "offsets").explode().drop_nulls(),
        pl.col("topic", "partition", "seq").first(),
        pl.col("missing").sum(),
        pl.col("t").min(),
    )  # fmt: skip
