"""Derivation of the tables that finders ask from the rows in doubt."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile.find.findings import sql
from harness.reconcile.find.known import COMMITTED, Known
from harness.reconcile.find.tables import ACKED, MESSAGE, PARTITION, POSITION, REJECTED
from harness.reconcile.screen.transaction_fates import TRANSACTION

Rows = Mapping[str, pl.DataFrame]  # attempts, log and deliveries


def prepared(rows: Rows, known: Known) -> dict[str, pl.DataFrame]:
    """Return the rows with columns that several questions need.

    `ours`: the payload is intact and of this run, so its fields can be trusted. Deliveries also get reader_name, isolation and
    observes of their reader, and `shown_all`: the reader is an observer of read_uncommitted, which gets aborted records by
    design.
    """
    deliveries = rows["deliveries"].join(known.readers, on=["run", "reader"], how="left")
    return {
        "attempts": rows["attempts"],
        "log": rows["log"].with_columns(_OURS.alias("ours")),
        "deliveries": deliveries.with_columns(
            _OURS.alias("ours"), sql("observes AND isolation = 'read_uncommitted'").alias("shown_all")
        ),
    }


_STRANGE = BAD_PAYLOAD | FOREIGN_RUN
_OURS = (pl.col("flags") & _STRANGE) == 0


def claims_of(rows: Rows) -> pl.DataFrame:
    place = ["topic", "partition", "offset", "t"]
    acks = (
        rows["attempts"]
        .filter(sql("offset IS NOT NULL"))
        .select(
            *MESSAGE, pl.lit("ack").alias("source"), "topic", pl.col("told_partition").alias("partition"), "offset",
            pl.col("t_outcome").alias("t"),
        )
    )  # fmt: skip
    found = rows["log"].filter("ours").select(*MESSAGE, pl.lit("final read").alias("source"), *place)
    given = rows["deliveries"].filter("ours").select(*MESSAGE, pl.lit("delivery").alias("source"), *place)
    return pl.concat([acks, found, given])


_CLAIMANT = [pl.when("ours").then(pl.col(name)).alias(name) for name in ("session", "seq")]


def readable_of(records: pl.DataFrame, known: Known) -> pl.DataFrame:
    """Return the records of the log that the group could get."""
    log = records.join(known.runs, on="run", how="left").with_columns(_OURS.alias("ours"))
    readable = log.filter(sql("CASE WHEN reads_committed THEN committed ELSE uncommitted END"))
    return readable.select(*POSITION, *_CLAIMANT)


def steps_of(steps: pl.DataFrame) -> pl.DataFrame:
    """Return the steps of readers as in StepTables; a row whose payload is damaged or foreign names no message."""
    message = [
        pl.when((pl.col(f"{end}_flags") & _STRANGE) == 0).then(pl.col(f"{end}_{name}")).alias(f"{end}_{name}")
        for end in ("from", "to")
        for name in ("session", "seq")
    ]
    return steps.select(
        "run", *(pl.col(f"to_{name}").cast(pl.Int32).alias(name) for name in ("reader", "topic", "partition")),
        sql("CASE WHEN from_t = to_t THEN 'within' ELSE 'between' END").alias("scope"),
        sql("from_generation != to_generation").alias("excused"),
        "from_t", "from_offset", "to_t", "to_offset", *message,
    )  # fmt: skip


def positions_of(rows: Rows) -> pl.DataFrame:
    acks = (
        rows["attempts"]
        .filter(sql("offset IS NOT NULL"))
        .select(
            "run", "topic", pl.col("told_partition").alias("partition"), "offset", "session", "seq",
            pl.lit(True).alias("ack"),
        )
    )  # fmt: skip
    # A damaged or foreign record has a position too, but its message is unknown.
    found = rows["log"].select(*POSITION, *_CLAIMANT, "flags", "passed", "uncommitted", "committed")
    given = rows["deliveries"].select(
        *POSITION, *_CLAIMANT, "flags", pl.col("t").alias("seen"),
        pl.when(~pl.col("observes")).then(pl.col("t")).alias("t"),
    )  # fmt: skip
    session, seq = pl.col("session"), pl.col("seq")
    return (
        pl.concat([acks, found, given], how="diagonal")
        .group_by(POSITION)
        .agg(
            session.min(),
            seq.filter(session == session.min()).min(),
            ((session.min() != session.max()) | (seq.min() != seq.max())).alias("contested"),
            pl.col("ack").any().alias("acked"),
            pl.col("uncommitted").any().alias("in_log"),
            pl.col("committed").any().alias("in_committed"),
            pl.col("passed").any(),
            pl.col("t").count().cast(pl.Int64).alias("delivered"),
            pl.col("t").min().alias("t_first"),
            pl.col("t").max().alias("t_last"),
            pl.col("seen").min().alias("t_seen"),
            pl.col("flags").bitwise_or().fill_null(0),
        )
    )


def harmed_of(positions: pl.DataFrame) -> pl.DataFrame:
    """Return run, session, seq of damaged messages: the message that was acked at the position, or that others read there."""
    harmed = positions.filter((pl.col("flags") & BAD_PAYLOAD) != 0)
    return harmed.filter(sql("(in_log OR in_committed) AND session IS NOT NULL")).select(MESSAGE)


_CARRIED = (
    "t", "t_outcome", "outcome", "intended_topic", "intended_partition", "acked_partition", "acked_offset",
)  # fmt: skip
_OWED = f"attempted AND (txn = 0 AND outcome = {ACKED} OR fate = '{COMMITTED}' AND outcome != {REJECTED})"


def messages_of(rows: Rows, known: Known, harmed: pl.DataFrame) -> pl.DataFrame:
    sent = rows["attempts"].select(
        *MESSAGE, pl.lit(True).alias("attempt"), "t", "t_outcome", "outcome", "txn", "key",
        sent_txn="txn", sent_key="key", intended_topic="topic", intended_partition="partition",
        acked_partition="told_partition", acked_offset="offset",
    )  # fmt: skip
    found = rows["log"].filter("ours").select(
        *MESSAGE, "topic", "partition", "offset", "txn", "key", "promised", "uncommitted", "committed"
    )  # fmt: skip
    starts = known.bounds.select(*PARTITION, "start")
    given = rows["deliveries"].filter("ours").join(starts, on=PARTITION, how="left").select(
        *MESSAGE, "txn", "key", delivery=~pl.col("observes"), seen_partition="partition", seen_offset="offset",
        seen_below=sql("offset < start"),
    )  # fmt: skip
    harm = harmed.select(*MESSAGE, pl.lit(True).alias("harm"))
    key, txn = pl.col("key"), pl.col("txn")
    both = pl.concat([sent, found, given, harm], how="diagonal").group_by(MESSAGE).agg(
        pl.col("attempt").any().alias("attempted"),
        *(pl.col(name).max() for name in _CARRIED),
        pl.coalesce(pl.col("sent_txn").max(), txn.max()).alias("txn"),
        pl.coalesce(pl.col("sent_key").max(), key.max()).alias("key"),
        pl.col("uncommitted").any().alias("in_log"),
        pl.col("committed").any().alias("in_committed"),
        pl.col("promised").any(),
        pl.col("harm").any().alias("damaged"),
        *(pl.col(name).min().alias(f"{name}_min") for name in ("topic", "partition", "offset")),
        *(pl.col(name).max().alias(f"{name}_max") for name in ("topic", "partition", "offset")),
        pl.col("delivery").sum().cast(pl.Int64).alias("delivered"),
        pl.col("seen_partition").min(),
        pl.col("seen_offset").min(),
        pl.col("seen_below").any(),
        ((key.min() != key.max()) | (txn.min() != txn.max())).alias("altered"),
    )  # fmt: skip
    return both.join(known.fates.drop("asked_at"), on=TRANSACTION, how="left").with_columns(
        sql(_OWED).fill_null(False).alias("owed"), sql("promised OR damaged").alias("visible")
    )


def places_of(log: pl.DataFrame) -> pl.DataFrame:
    return log.filter("ours").select(*MESSAGE, "topic", "partition", "offset").unique()


_ONE_PLACE = (
    "attempted AND (in_log OR in_committed) AND partition_min = partition_max AND topic_min = topic_max"
)


def placed_of(messages: pl.DataFrame) -> pl.DataFrame:
    """Return run, session, topic, partition, seq, offset, t of messages whose order can be compared, by their first places.

    A late copy of a message is `duplicated`. A message in several partitions is a finding already and has no one place to
    compare. Messages without an attempt are left out: one phantom with a high number would accuse thousands.
    """
    return messages.filter(sql(_ONE_PLACE)).select(
        "run", "session", pl.col("topic_min").alias("topic"), pl.col("partition_min").alias("partition"), "seq",
        pl.col("offset_min").alias("offset"), "t",
    )  # fmt: skip


def pairs_of(placed: pl.DataFrame) -> pl.DataFrame:
    """Return each message with the latest-sent one before it in its partition, if that was sent later than it."""
    lane = ["run", "session", "topic", "partition"]
    # seq     1 4 2 3 5      highest  1 4 4 4 5      ahead  - 1 4 4 4: 2 and 3 are behind 4
    highest = pl.col("seq").cum_max()
    reached = pl.when(pl.col("seq") == highest).then(pl.col("offset")).forward_fill()
    behind = (
        placed.sort("offset", "seq")
        .with_columns(
            highest.shift(1).over(lane).alias("second_seq"),
            reached.shift(1).over(lane).alias("second_offset"),
        )
        .filter(sql("second_seq > seq"))
    )
    return behind.select(
        *lane, "t", pl.lit(None, pl.String).alias("scope"), pl.col("seq").alias("first_seq"),
        pl.col("offset").alias("first_offset"), "second_seq", "second_offset",
    )  # fmt: skip


_KEYED = "attempted AND (in_log OR in_committed) AND key >= 0 AND intended_partition < 0"


def keyed_of(messages: pl.DataFrame, deliveries: pl.DataFrame, known: Known) -> pl.DataFrame:
    to_group = deliveries.filter(sql("ours AND NOT observes"))
    given = to_group.group_by(MESSAGE).agg(pl.col("t").min().alias("given"))
    lives = known.senders.select("run", "session", "producer", "incarnation")
    keyed = known.named(messages.filter(sql(_KEYED)))
    return keyed.join(given, on=MESSAGE, how="left").join(lives, on=["run", "session"], how="left").select(
        "run", pl.col("topic_min").alias("topic"), "key", "session", "seq", "sender", "producer", "incarnation",
        "t", "t_outcome", "outcome", "partition_min", "partition_max", pl.col("partition_min").alias("partition"),
        pl.col("offset_min").alias("offset"), "given",
    )  # fmt: skip


def keyed_places_of(keyed: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Return every place of keyed messages, with the first topic of the key and its own.

    One message may be in several partitions, and in another topic.
    """
    about = keyed.select(*MESSAGE, pl.col("topic").alias("key_topic"), "key", "sender", "t")
    return about.join(places, on=MESSAGE, how="inner")
