"""The tables that finders ask: the sealed ledger, and what several finders need of it, computed once.

Two groupings answer nearly every question, each a single pass over attempts, log and deliveries: by message
(`messages`) and by position (`positions`). Both aggregate plain numbers only, which Spark hashes in place;
whether all of several numbers are the same is asked by comparing their smallest with their largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from harness.contracts import Outcome
from harness.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile.schema import SCHEMAS, spark_schema

MESSAGE = ["run", "session", "seq"]
POSITION = ["run", "topic", "partition", "offset"]
PARTITION = ["run", "topic", "partition"]
TRANSACTION = ["run", "session", "txn"]

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"


@dataclass(frozen=True)
class Tables:
    """The sealed tables as in harness.reconcile.schema, and five derived ones."""

    runs: DataFrame
    sessions: DataFrame
    attempts: DataFrame
    deliveries: DataFrame
    log: DataFrame
    transactions: DataFrame
    commits: DataFrame
    assignments: DataFrame
    windows: DataFrame
    bounds: DataFrame
    events: DataFrame

    # run, session, txn, fate: committed (told, or proven by E2), aborted (certainly not committed) or unknown.
    fates: DataFrame
    # run, session, seq, source (ack, read_uncommitted, read_committed, delivery), topic, partition, offset, t:
    # who says that this message stands at this position.
    claims: DataFrame
    # One row a message that was attempted, found or delivered. Of the attempt (null without one): attempted,
    # t, t_outcome, outcome, txn, key, intended_topic, intended_partition, acked_partition, acked_offset, fate.
    # Of the log: in_log, in_committed, damaged (booleans), topic_min/max, partition_min/max, offset_min/max.
    # delivered: how often. altered: key or transaction differ from what was sent.
    # owed: it must be in the log. visible: it is in the log that is owed.
    messages: DataFrame
    # One row a position: session_min/max, seq_min/max of those who claim it, claimants' own in_log,
    # in_committed, acked (booleans), delivered (times), t_first, t_last of its deliveries, flags of all who read it.
    positions: DataFrame
    # run, topic, partition, reach: the group has been given, or answers for, everything below it.
    reach: DataFrame

    def named(self, frame: DataFrame, *, session: str = "session", sender: str = "sender") -> DataFrame:
        """With the sender's name; a session that nobody began is called by its number."""
        names = self.sessions.select("run", f.col("session").alias(session), f.col("sender").alias(sender))
        unknown = f.concat(f.lit("session "), f.col(session).cast("string"))
        return frame.join(f.broadcast(names), on=["run", session], how="left").withColumn(
            sender, f.coalesce(sender, unknown)
        )

    def unpersist(self) -> None:
        for frame in (self.messages, self.positions, self.fates):
            frame.unpersist()


def message_id(sender: str = "sender", seq: str = "seq") -> Column:
    """The id that people read; as harness.message.message_id."""
    return f.concat(f.col(sender), f.lit("-"), f.col(seq).cast("string"))


def load(spark: SparkSession, folder: Path | str) -> Tables:
    """The tables of a run from its `tables/` folder. Nothing is computed before a finder asks."""
    return derive(**{
        name: spark.read.schema(spark_schema(name)).parquet(str(Path(folder) / name)) for name in SCHEMAS
    })  # fmt: skip


def derive(**sealed: DataFrame) -> Tables:
    attempts, log, deliveries = sealed["attempts"], sealed["log"], sealed["deliveries"]
    runs = sealed["runs"]
    claims = _claims(attempts, log, deliveries)
    fates = _fates(sealed["transactions"], log, deliveries, runs).persist()
    positions = _positions(attempts, log, deliveries).persist()
    messages = _messages(attempts, log, deliveries, positions, fates, runs).persist()
    return Tables(
        **sealed, fates=fates, claims=claims, positions=positions, messages=messages,
        reach=_reach(sealed["commits"], sealed["bounds"], runs),
    )  # fmt: skip


def ours() -> Column:
    """The payload is intact and of this run, so that its fields can be believed."""
    return f.col("flags").bitwiseAND(BAD_PAYLOAD | FOREIGN_RUN) == 0


def _stack(*frames: DataFrame) -> DataFrame:
    return reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), frames)


def _claims(attempts: DataFrame, log: DataFrame, deliveries: DataFrame) -> DataFrame:
    place = ["topic", "partition", "offset", "t"]
    acks = attempts.where(f.col("offset").isNotNull()).select(
        *MESSAGE, f.lit("ack").alias("source"), "topic", f.col("told_partition").alias("partition"), "offset",
        f.col("t_outcome").alias("t"),
    )  # fmt: skip
    found = log.where(ours()).select(*MESSAGE, f.col("isolation").alias("source"), *place)
    given = deliveries.where(ours()).select(*MESSAGE, f.lit("delivery").alias("source"), *place)
    return _stack(acks, found, given)


def _fates(transactions: DataFrame, log: DataFrame, deliveries: DataFrame, runs: DataFrame) -> DataFrame:
    """What became of each transaction. Never asked to commit, or an acked abort: certainly aborted."""
    asked = f.max((f.col("did") == "commit").cast("int"))
    ended = f.col("step") == "ended"
    commit_acked = ended & (f.col("did") == "commit") & (f.col("outcome") == int(Outcome.ACKED))
    commit_rejected = ended & (f.col("did") == "commit") & (f.col("outcome") == int(Outcome.REJECTED))
    abort_acked = ended & (f.col("did") == "abort") & (f.col("outcome") == int(Outcome.ACKED))
    told = transactions.groupBy(*TRANSACTION).agg(
        f.coalesce(asked, f.lit(0)).alias("asked"),
        f.max(f.coalesce(commit_acked, f.lit(False))).alias("committed"),
        f.max(f.coalesce(commit_rejected | abort_acked, f.lit(False))).alias("aborted"),
    )
    # E2: a record of it that a read_committed reader got proves an unknown transaction committed.
    strict_group = f.broadcast(runs.where(f.col("group_isolation") == "read_committed").select("run"))
    read = _stack(
        log.where(f.col("isolation") == "read_committed").where(ours()).select(*TRANSACTION),
        deliveries.where(ours()).join(strict_group, on="run", how="left_semi").select(*TRANSACTION),
    )
    proven = read.where(f.col("txn") > 0).distinct().withColumn("proven", f.lit(True))
    fate = (
        f.when(f.col("committed"), COMMITTED)
        .when(f.col("aborted") | (f.col("asked") == 0), ABORTED)
        .when(f.col("proven"), COMMITTED)
        .otherwise(UNKNOWN)
    )
    return told.join(proven, on=TRANSACTION, how="left").select(*TRANSACTION, fate.alias("fate"))


def _positions(attempts: DataFrame, log: DataFrame, deliveries: DataFrame) -> DataFrame:
    def source(name: str) -> Column:
        return f.coalesce(f.max((f.col("source") == name).cast("int")), f.lit(0)) == 1

    # What is not ours has a position all the same, and its flags say what is wrong with it; who it is, it cannot say.
    identity = [f.when(ours(), f.col(name)).alias(name) for name in ("session", "seq")]
    acks = attempts.where(f.col("offset").isNotNull()).select(
        "run", "topic", f.col("told_partition").alias("partition"), "offset", f.lit("ack").alias("source"),
        "session", "seq",
    )  # fmt: skip
    found = log.select(*POSITION, f.col("isolation").alias("source"), "flags", *identity)
    given = deliveries.select(
        *POSITION, "flags", *identity, f.col("t").alias("t_delivery"), f.lit(1).alias("delivery")
    )
    return _stack(acks, found, given).groupBy(*POSITION).agg(
        f.min("session").alias("session_min"), f.max("session").alias("session_max"),
        f.min("seq").alias("seq_min"), f.max("seq").alias("seq_max"),
        source("ack").alias("acked"),
        source("read_uncommitted").alias("in_log"),
        source("read_committed").alias("in_committed"),
        f.coalesce(f.sum("delivery"), f.lit(0)).alias("delivered"),
        f.min("t_delivery").alias("t_first"), f.max("t_delivery").alias("t_last"),
        f.coalesce(f.bit_or("flags"), f.lit(0)).alias("flags"),
    )  # fmt: skip


def _messages(
    attempts: DataFrame,
    log: DataFrame,
    deliveries: DataFrame,
    positions: DataFrame,
    fates: DataFrame,
    runs: DataFrame,
) -> DataFrame:
    sent = attempts.select(
        *MESSAGE, f.lit(1).alias("attempt"), "t", "t_outcome", "outcome", "txn", "key",
        f.col("txn").alias("sent_txn"), f.col("key").alias("sent_key"),
        f.col("topic").alias("intended_topic"), f.col("partition").alias("intended_partition"),
        f.col("told_partition").alias("acked_partition"), f.col("offset").alias("acked_offset"),
    )  # fmt: skip
    found = log.where(ours()).select(
        *MESSAGE, "topic", "partition", "offset", "txn", "key", f.lit(1).alias("log"),
        f.when(f.col("isolation") == "read_committed", 1).alias("committed_log"),
    )  # fmt: skip
    given = deliveries.where(ours()).select(*MESSAGE, "txn", "key", f.lit(1).alias("delivery"))
    # A payload that cannot be read is still the message that was acked there, or that others read there.
    harmed = positions.where(f.col("flags").bitwiseAND(BAD_PAYLOAD) != 0).where(f.col("in_log")).select(
        "run", f.col("session_min").alias("session"), f.col("seq_min").alias("seq"), f.lit(1).alias("harm"),
    )  # fmt: skip
    both = _stack(sent, found, given, harmed.where(f.col("session").isNotNull())).groupBy(*MESSAGE).agg(
        f.max("attempt").isNotNull().alias("attempted"),
        *(f.max(c).alias(c) for c in ("t", "t_outcome", "outcome", "intended_topic", "intended_partition",
                                      "acked_partition", "acked_offset")),
        f.coalesce(f.max("sent_txn"), f.max("txn")).alias("txn"),
        f.coalesce(f.max("sent_key"), f.max("key")).alias("key"),
        f.max("log").isNotNull().alias("in_log"),
        f.max("committed_log").isNotNull().alias("in_committed"),
        f.max("harm").isNotNull().alias("damaged"),
        *(side(c).alias(f"{c}_{side.__name__}") for c in ("topic", "partition", "offset") for side in (f.min, f.max)),
        f.coalesce(f.sum("delivery"), f.lit(0)).alias("delivered"),
        ((f.min("key") != f.max("key")) | (f.min("txn") != f.max("txn"))).alias("altered"),
    )  # fmt: skip
    plain = (f.col("txn") == 0) & (f.col("outcome") == int(Outcome.ACKED))
    in_commit = (f.col("fate") == COMMITTED) & (f.col("outcome") != int(Outcome.REJECTED))
    visible = f.when(f.col("transactional"), f.col("in_committed")).otherwise(f.col("in_log")) | f.col("damaged")
    kind = runs.select("run", "transactional")
    return (
        both.join(fates, on=TRANSACTION, how="left")
        .join(f.broadcast(kind), on="run", how="left")
        .withColumn("owed", f.col("attempted") & (plain | f.coalesce(in_commit, f.lit(False))))
        .withColumn("visible", visible)
    )


def _reach(commits: DataFrame, bounds: DataFrame, runs: DataFrame) -> DataFrame:
    committed = commits.where(f.col("outcome") == int(Outcome.ACKED)).select(*PARTITION, f.col("offset").alias("reach"))
    drained = f.broadcast(runs.where(f.col("drained")).select("run"))
    ends = bounds.join(drained, on="run", how="left_semi").select(*PARTITION, f.col("end").alias("reach"))
    return _stack(committed, ends).groupBy(*PARTITION).agg(f.max("reach").alias("reach"))
