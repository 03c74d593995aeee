"""The tables of a sealed ledger: their columns, in one place. Times are ns of the run's monotonic clock.

`run` is the run's number (harness.ledger.message.run_number, signed), so that the tables of many runs can be read
as one. `topic` is a number as in payloads; table `runs` has the name of topic 0, the topic under test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_RUN = ("run", pa.int64())
_RECORD = [
    _RUN,
    ("t", pa.int64()),
    ("topic", pa.int32()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("session", pa.int64()),
    ("seq", pa.int64()),
    ("txn", pa.int64()),
    ("key", pa.int32()),
    ("intended_topic", pa.int32()),
    ("intended_partition", pa.int32()),
    (
        "flags",
        pa.int32(),
    ),  # message.BAD_*, FOREIGN_RUN; with BAD_PAYLOAD all that comes from the payload is 0
    ("leader_epoch", pa.int32()),
]

SCHEMAS: dict[str, pa.Schema] = {
    "runs": pa.schema([
        _RUN,
        ("run_id", pa.string()),
        ("scenario", pa.string()),
        ("zero_ns", pa.int64()),  # the moment that seconds of this run count from
        ("topic_name", pa.string()),
        ("topic_unchanged", pa.bool_()),  # its number of partitions stayed the same
        ("group_isolation", pa.string()),
    ]),
    "sessions": pa.schema([
        _RUN,
        ("session", pa.int64()),
        ("sender", pa.string()),  # <producer>.<incarnation>: ids are <sender>-<seq>
        ("producer", pa.string()),
        ("incarnation", pa.int32()),
        ("acks", pa.string()),
        ("in_flight", pa.int32()),
        ("idempotent", pa.bool_()),
        ("t", pa.int64()),
    ]),
    "attempts": pa.schema([
        _RUN,
        ("session", pa.int64()),
        ("seq", pa.int64()),
        ("t", pa.int64()),
        ("topic", pa.int32()),
        ("partition", pa.int32()),  # intended; -1: the client chose
        ("key", pa.int32()),
        ("txn", pa.int64()),
        ("outcome", pa.int32()),
        ("t_outcome", pa.int64()),  # null: no outcome was recorded
        ("told_partition", pa.int32()),  # as the client reported it; null: none
        ("offset", pa.int64()),  # of an ack that can be relied on (not acks=0), else null
        ("error", pa.int32()),
        ("phase", pa.int32()),  # of its outcome: rows.BEFORE, DURING or AFTER the fault windows; null without any
    ]),
    "readers": pa.schema([
        _RUN,
        ("reader", pa.int32()),  # its number in deliveries, commits and assignments
        ("name", pa.string()),
        ("isolation", pa.string()),
        ("observer", pa.bool_()),  # not a member of the group
    ]),
    # Rows of one reader are in the order in which it got them, in one file.
    "deliveries": pa.schema([
        *_RECORD,
        ("reader", pa.int32()),
        ("generation", pa.int32()),  # how many assignments had touched this partition for this reader by then
    ]),
    "log": pa.schema([
        *_RECORD,
        ("uncommitted", pa.bool_()),  # the final read_uncommitted reading found it
        ("committed", pa.bool_()),  # the final read_committed reading found it
        ("promised", pa.bool_()),  # found in the log that is owed: in exactly-once the read_committed one
        ("passed", pa.bool_()),  # found in the log that the group reads, below what it has committed or drained
    ]),
    # Records of the log that is owed that pipelines made of others: message, position, origin, number of the effect.
    "effects": pa.schema([
        _RUN,
        *((name, pa.int64()) for name in
          ("topic", "partition", "offset", "session", "seq", "number",
           "origin_topic", "origin_partition", "origin_offset", "origin_session", "origin_seq",
           "late")),  # 1: behind an open transaction, so it is not known yet whether it counts
    ]),
    "transactions": pa.schema([
        _RUN,
        ("t", pa.int64()),
        ("session", pa.int64()),
        ("txn", pa.int64()),
        ("step", pa.string()),
        ("did", pa.string()),
        ("outcome", pa.int32()),
    ]),
    "commits": pa.schema([
        _RUN,
        ("t", pa.int64()),
        ("reader", pa.int32()),
        ("topic", pa.int32()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("outcome", pa.int32()),
    ]),
    "assignments": pa.schema([
        _RUN,
        ("t", pa.int64()),
        ("reader", pa.int32()),
        ("how", pa.string()),
        ("topic", pa.int32()),
        ("partitions", pa.list_(pa.int32())),
    ]),
    "windows": pa.schema([
        _RUN,
        ("window", pa.int32()),
        ("opened", pa.int64()),
        ("closed", pa.int64()),  # when nothing of it could be measured any more; else its undoing; else the end of time
    ]),
    # One row for each partition that was to be read; start is the higher one of before and after, null if unknown.
    "bounds": pa.schema([
        _RUN,
        ("topic", pa.int32()),
        ("partition", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("stable", pa.int64()),
        ("whole", pa.bool_()),  # the final reading of the isolation that is owed reached its end
        ("whole_for_group", pa.bool_()),  # and that of the isolation that the group reads
    ]),
    "events": pa.schema([
        _RUN,
        ("t", pa.int64()),
        ("event", pa.string()),
        ("writer", pa.string()),
        ("fields", pa.string()),  # the whole line
    ]),
}  # fmt: skip


def spark_schema(table: str) -> StructType:
    """Return the same columns for Spark, so that it never has to open files for them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(SCHEMAS[table])


LARGE = ("attempts", "log", "deliveries")  # for Spark
EFFECTS = "effects"  # of pipelines; may be large, too
SMALL = ("transactions", "commits", "bounds", "assignments")  # also needed by the job; read without Spark
