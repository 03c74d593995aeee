"""What must be in the log and is not, and why: lost, or excused by E8 as expired or late."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.reconcile.findings import finding, known
from harness.reconcile.tables import PARTITION, Tables, message_id

LOST, EXPIRED, LATE = "lost", "expired", "late"


def missing(tables: Tables) -> DataFrame:
    """Owed messages that are not in the log that is owed, each with its `class`."""
    gone = tables.messages.where(f.col("owed") & ~f.col("visible")).select(
        "run", "session", "seq", "t", "t_outcome", "txn", "fate", "outcome", "acked_offset", "offset_min",
        f.coalesce("acked_partition", "partition_min", f.when(f.col("intended_partition") >= 0, f.col("intended_partition")))
        .alias("partition"),
        f.col("intended_topic").alias("topic"), "in_log",
    )  # fmt: skip
    below_start = f.col("acked_offset") < f.col("start")
    # It stands in the log, behind a transaction that is still open: a read_committed reader will get it later.
    # An acked offset alone is no proof of that: a log cut back by a failover ends below the acks it gave.
    behind_open = f.col("in_log") & (f.col("offset_min") >= f.col("stable"))
    return gone.join(f.broadcast(tables.bounds), on=PARTITION, how="left").withColumn(
        "class", f.when(below_start, EXPIRED).when(behind_open, LATE).otherwise(LOST)
    )


def missing_findings(tables: Tables, rows: DataFrame, anomaly: str) -> DataFrame:
    return tables.named(rows).select(*finding(
        anomaly,
        messages=f.array(message_id()), offsets=known(f.coalesce("acked_offset", "offset_min")),
        topic=f.col("topic"), partition=f.col("partition"), sender=f.col("sender"),
        t=f.coalesce("t_outcome", "t"),
        evidence={
            "t_attempt": f.col("t"), "t_outcome": f.col("t_outcome"), "outcome": f.col("outcome"),
            "txn": f.col("txn"), "fate": f.col("fate"), "log_start": f.col("start"), "log_end": f.col("end"),
            "last_stable": f.col("stable"),
        },
    ))  # fmt: skip
