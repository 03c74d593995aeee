"""What must be in the log and is not, and why: lost, excused by E8 as expired or late, or not to be judged."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.by_queries.findings import finding, known
from harness.reconcile.by_queries.look import PARTITION
from harness.reconcile.by_queries.tables import Tables

LOST, EXPIRED, LATE = "lost", "expired", "late"
NOT_ASKED = "not asked"  # its partition was not read whole (E11)
UNPLACED = "unplaced"  # its position is not known, and older records of its partition were deleted

NOT_THERE = "owed AND NOT visible"
_WHERE = "coalesce(acked_partition, partition_min, seen_partition, CASE WHEN intended_partition >= 0 THEN intended_partition END)"

# It stands in the log behind a transaction that is still open: a read_committed reader will get it later. An acked
# offset alone is no proof of that: a log cut back by a failover ends below the acks it gave.
_BEHIND_OPEN = "in_log AND offset_min >= stable"
# What a reader got tells its position as well as an ack does.
_BELOW_START = "acked_offset < start OR acked_offset IS NULL AND seen_below"
_UNPLACED = "acked_offset IS NULL AND seen_offset IS NULL AND NOT in_log AND start > 0"


def classed(tables: Tables) -> DataFrame:
    """Owed messages that are not in the log that is owed, each with its kind."""
    gone = tables.messages.where(NOT_THERE).selectExpr(
        "*", "intended_topic AS topic", f"{_WHERE} AS partition"
    )  # fmt: skip
    # A message that may stand in any partition is asked about when all of its topic were read.
    topics = tables.bounds.groupBy("run", "topic").agg(
        f.expr("bool_and(whole) AS all_whole"), f.expr("max(start) AS latest_start")
    )
    placed = gone.join(f.broadcast(tables.bounds), on=PARTITION, how="left").join(
        f.broadcast(topics), on=["run", "topic"], how="left"
    )
    read = placed.selectExpr(
        *(name for name in placed.columns if name not in ("start", "whole", "all_whole", "latest_start")),
        "CASE WHEN partition IS NULL THEN latest_start ELSE start END AS start",
        "coalesce(CASE WHEN partition IS NULL THEN all_whole ELSE whole END, false) AS asked",
    )
    return read.selectExpr(
        "*",
        f"CASE WHEN NOT asked THEN '{NOT_ASKED}' WHEN {_BELOW_START} THEN '{EXPIRED}' WHEN {_BEHIND_OPEN} THEN '{LATE}' "
        f"WHEN {_UNPLACED} THEN '{UNPLACED}' ELSE '{LOST}' END AS kind",
    )


def missing(tables: Tables, kind: str) -> DataFrame:
    """Findings of one kind."""
    at = (
        "coalesce(acked_offset, offset_min, seen_offset)"
        if kind == EXPIRED
        else "coalesce(acked_offset, offset_min)"
    )
    return tables.named(classed(tables).where(f"kind = '{kind}'")).selectExpr(*finding(
        kind,
        offsets=known(at), t="coalesce(t_outcome, t)",
        evidence={
            "t_attempt": "t", "t_outcome": "t_outcome", "outcome": "outcome", "txn": "txn", "fate": "fate",
            # In the log as of a transaction that was aborted: readers of read_committed pass over it.
            "hidden_at": "CASE WHEN in_log THEN offset_min END",
            "log_start": "start", "log_end": "end", "last_stable": "stable",
        },
    ))  # fmt: skip


def unjudged(tables: Tables) -> list[dict[str, Any]]:
    """How many owed messages could not be judged, one entry a run and kind: run, kind, n, and the first one's id."""
    there = classed(tables).where(f"kind IN ('{NOT_ASKED}', '{UNPLACED}')")
    counted = there.groupBy("run", "kind").agg(
        f.expr("count(1) AS n"), f.expr("min(struct(session, seq)) AS first")
    )
    senders = tables.names.senders
    return [
        {
            "run": row["run"], "kind": row["kind"], "n": int(row["n"]),
            "first": f"{senders.get((row['run'], session), f'session {session}')}-{row['first']['seq']}",
        }
        for row in counted.collect()
        for session in [row["first"]["session"]]
    ]  # fmt: skip
