"""The tables that finders ask: the sealed ledger, and what several finders need of it, computed once.

Two groupings answer nearly every question, each a single pass over attempts, log and deliveries: by message
(`messages`) and by position (`positions`). Both aggregate plain numbers only, which Spark hashes in place;
whether all of several numbers are the same is asked by comparing their smallest with their largest.
Conditions are Spark SQL text: they read like the question, and each is one call to the JVM instead of ten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from harness.contracts import Outcome
from harness.errors import LedgerError
from harness.message import BAD_PAYLOAD
from harness.reconcile.by_queries.look import OURS, Chosen, kept
from harness.reconcile.by_queries.names import Names, reader_mark, sender_mark
from harness.reconcile.by_queries.rows_here import local
from harness.reconcile.elsewhere import need_sound
from harness.reconcile.fates import TRANSACTION, told
from harness.reconcile.schema import EFFECTS, LARGE, SCHEMAS, SMALL, spark_schema
from harness.reconcile.screen import by_runs
from harness.reconcile.seal import Sealed
from harness.reconcile.source import Source

MESSAGE = ["run", "session", "seq"]
POSITION = ["run", "topic", "partition", "offset"]

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"
_LIVES = pa.schema(
    [("run", pa.int64()), ("session", pa.int64()), ("producer", pa.string()), ("incarnation", pa.int32())]
)
ACKED, REJECTED = int(Outcome.ACKED), int(Outcome.REJECTED)


@dataclass(frozen=True)
class Tables:
    """The sealed tables as in harness.reconcile.schema, and the derived ones."""

    attempts: DataFrame
    deliveries: DataFrame
    log: DataFrame
    bounds: DataFrame
    names: Names

    # run, session, txn, fate: committed (told, or proven by E2), aborted (certainly not committed) or unknown;
    # asked_at: before that it cannot have been committed (0: nobody knows).
    fates: DataFrame
    # One row a message that was attempted, found or delivered. Of the attempt (null without one): attempted, t,
    # t_outcome, outcome, txn, key, intended_topic, intended_partition, acked_partition, acked_offset, fate.
    # Of the log: in_log, in_committed, promised, damaged (booleans), topic_min/max, partition_min/max,
    # offset_min/max. delivered: how often to the group. Of all readers: seen_partition, seen_offset, the lowest that
    # one got it at (null: nobody did), and seen_below: one of these is below the start of the log now. altered: key or transaction differ from what was sent.
    # owed: it must be in the log. visible: it is in the log that is owed.
    messages: DataFrame
    # One row a position: holder (session, seq), session_min/max, seq_min/max of those who claim it; acked, in_log, in_committed, promised,
    # passed (booleans); delivered (how often), t_first, t_last of its deliveries to the group; t_seen: when any reader first got
    # it; flags of all who read it.
    positions: DataFrame
    # run, session, seq, source (ack, final read or delivery), topic, partition, offset, t: who says that a message
    # stands at a position. What is in `places` stands there for sure: run, session, seq, topic, partition, offset.
    claims: DataFrame
    places: DataFrame
    # Two messages of one session in one partition, in the order of their sends: run, session, topic, partition, t,
    # scope, first_seq, first_offset, second_seq, second_offset. Only pairs that are worth comparing.
    pairs: DataFrame
    # run, topic, key, records, partition_min/max: keyed messages whose partition was left to the client.
    keys: DataFrame
    # Steps of readers as in harness.reconcile.by_queries.trails.
    steps: DataFrame
    # Records that a reader of the group could get: run, topic, partition, offset, session, seq (null: cannot say).
    readable: DataFrame
    overcommits: DataFrame  # as in harness.reconcile.by_queries.look.Chosen
    # Of transactions (run, session, txn), how many of their records are visible in the whole log: as `there`.
    rest_of: Callable[[DataFrame], DataFrame]
    tells_all: bool  # findings list everything that they concern, however much it is
    # run, topic, partition, first, second (readers), t, until: as in harness.reconcile.owners.
    shared: DataFrame | None = None
    # Of pipelines only, as in harness.reconcile.by_queries.provenance.
    inputs: DataFrame | None = None
    effects: DataFrame | None = None

    # Of histories only. neighbours: two sends of one operation that follow each other in a partition, with the columns of
    # `pairs` and txn. edges: run, source, target, kind (wr, ww): which operation comes before which, by their numbers.
    neighbours: DataFrame | None = None
    edges: DataFrame | None = None

    def reads_by_others(self) -> DataFrame:
        """Deliveries of records of ours, but for those that their own transaction got (told by `op`, if at all)."""
        reads = self.deliveries.where(OURS)
        return reads.where("op != txn") if "op" in reads.columns else reads

    def to_group(self) -> DataFrame:
        """Deliveries to the group, and none to observers."""
        return self.deliveries.where(f"NOT {self.names.observes()}")

    def named(self, frame: DataFrame, *, session: str = "session", sender: str = "sender") -> DataFrame:
        """With the sender's name, or rather a mark for it that its findings are spelled with."""
        return frame.withColumn(sender, f.expr(sender_mark(session)))

    def read_by(self, frame: DataFrame) -> DataFrame:
        """With the reader's name instead of its number, likewise, and what it reads."""
        return frame.withColumns(
            {"isolation": f.expr(self.names.isolation()), "reader": f.expr(reader_mark("reader"))}
        )

    def lives(self, spark: SparkSession) -> DataFrame:
        """run, session, producer, incarnation: a sender's name is its producer's, a dot, and the number of its life."""
        rows = [
            {"run": run, "session": session, "producer": producer, "incarnation": int(incarnation)}
            for (run, session), name in self.names.senders.items()
            for producer, _, incarnation in [name.rpartition(".")]
        ]
        return f.broadcast(local(spark, pa.Table.from_pylist(rows, schema=_LIVES)))

    def unpersist(self) -> None:
        for frame in (self.messages, self.positions):
            frame.unpersist()


def read(spark: SparkSession, sealed: Mapping[str, Sealed]) -> dict[str, DataFrame]:
    """The large tables of one or many runs from their `tables/` folders, on any file system."""

    def read_one(name: str) -> DataFrame:
        frame = spark.read.schema(spark_schema(name)).parquet(*(f"{folder}/{name}" for folder in sealed))
        if not any(one.rows[name] for one in sealed.values()):
            return frame.where(
                "false"
            )  # said aloud, so that Spark drops all that depends on it from its plans
        return frame

    return {name: read_one(name) for name in (*LARGE, EFFECTS)}


def read_small(runs: Mapping[Path, Sealed]) -> dict[str, pa.Table]:
    """The small tables of one or many runs, from their `tables/` folders on this machine."""
    found = {}
    for name in SMALL:
        parts = []
        for folder, sealed in runs.items():
            try:
                parts.append(pq.read_table(folder / name, schema=SCHEMAS[name]))
            except (pa.ArrowException, OSError) as error:
                raise LedgerError(f"{folder / name}: cannot be read: {str(error).splitlines()[0]}") from error
            need_sound(parts[-1], folder / name, sealed)
            if parts[-1].num_rows != sealed.rows[name]:
                raise LedgerError(
                    f"{folder / name}: {parts[-1].num_rows} rows, but sealing wrote {sealed.rows[name]}: not a whole table"
                )
        found[name] = pa.concat_tables(parts)
    return found


def names(sealed: Sequence[Sealed]) -> Names:
    return Names(
        {(one.run, s.session): f"{s.producer}.{s.incarnation}" for one in sealed for s in one.sessions},
        {(one.run, number): name for one in sealed for number, name in enumerate(one.reader_names)},
        {one.run: one.group_isolation for one in sealed},
        {one.run: one.topic_unchanged for one in sealed},
        {(one.run, observed.reader): observed.isolation for one in sealed for observed in one.observers},
    )


def derive(
    spark: SparkSession,
    source: Source,
    small: Mapping[str, pa.Table],
    chosen: Chosen,
    named: Names,
    *,
    strange: bool,
) -> Tables:
    """All tables, of the chosen rows. Little is computed before a question is asked."""
    by_message, by_position, either = chosen.by_message, chosen.by_position, chosen.either
    bounds = local(spark, small["bounds"])
    fates = kept(
        spark,
        fates_of(local(spark, told(small["transactions"])), either["log"], either["deliveries"], named),
        few=chosen.few,
    )
    positions = kept(
        spark,
        positions_of(by_position["attempts"], by_position["log"], by_position["deliveries"], named),
        few=chosen.few,
    )
    harmed = _harmed(positions) if strange else None
    messages = kept(
        spark,
        messages_of(
            by_message["attempts"], by_message["log"], by_message["deliveries"], fates, named, bounds, harmed
        ),
        few=chosen.few,
    )
    return Tables(
        **either, bounds=bounds, names=named,
        fates=fates, positions=positions, messages=messages,
        claims=claims_of(either["attempts"], either["log"], either["deliveries"]),
        places=either["log"].where(OURS).select(*MESSAGE, "topic", "partition", "offset").distinct(),
        pairs=_pairs(messages), keys=_keys(messages, named),
        steps=chosen.steps, readable=_readable(either["log"], named), overcommits=chosen.overcommits,
        rest_of=lambda transactions: rest_of(source, transactions), tells_all=False,
        inputs=chosen.inputs, effects=chosen.effects, shared=chosen.shared,
    )  # fmt: skip


def rest_of(source: Source, transactions: DataFrame) -> DataFrame:
    """A pass over the log for a few transactions: the rest of them may stand in sound blocks."""
    wanted = {tuple(row) for row in transactions.select(*TRANSACTION).collect()}

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for run, c in by_runs(batches, ("session", "txn", "promised")):
            for of_run, session, txn in wanted:
                there = (c["session"] == session) & (c["txn"] == txn) & c["promised"]
                if of_run == run and there.any():
                    told = (run, session, txn, int(there.sum()))
                    yield pa.RecordBatch.from_arrays([pa.array([n]) for n in told], [*TRANSACTION, "there"])

    schema = ", ".join(f"{name} bigint" for name in (*TRANSACTION, "there"))
    counted = source.each({"log": (("session", "txn", "promised"), count)}, schema)
    return counted.groupBy(*TRANSACTION).agg(f.expr("sum(there) AS there"))


def claims_of(attempts: DataFrame, log: DataFrame, deliveries: DataFrame) -> DataFrame:
    acks = attempts.where("offset IS NOT NULL").selectExpr(
        *MESSAGE, "'ack' AS source", "topic", "told_partition AS partition", "offset", "t_outcome AS t"
    )
    place = ["topic", "partition", "offset", "t"]
    found = log.where(OURS).selectExpr(*MESSAGE, "'final read' AS source", *place)
    given = deliveries.where(OURS).selectExpr(*MESSAGE, "'delivery' AS source", *place)
    return acks.unionByName(found).unionByName(given)


def _readable(log: DataFrame, named: Names) -> DataFrame:
    identity = [f"CASE WHEN {OURS} THEN {name} END AS {name}" for name in ("session", "seq")]
    committed = f"{named.group_isolation()} = 'read_committed'"
    return log.where(f"CASE WHEN {committed} THEN committed ELSE uncommitted END").selectExpr(
        *POSITION, *identity
    )


def _stack(*frames: DataFrame) -> DataFrame:
    return reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), frames)


def _exprs(*texts: str) -> list[Column]:
    return [f.expr(text) for text in texts]


def fates_of(told: DataFrame, log: DataFrame, deliveries: DataFrame, named: Names) -> DataFrame:
    """What became of each transaction. Never asked to commit, or an acked abort: certainly aborted."""
    # E2: a record of it that a read_committed reader got proves an unknown transaction committed.
    read = _stack(
        log.where(OURS).where("committed AND txn > 0").select(*TRANSACTION),
        deliveries.where(OURS)
        .where(f"txn > 0 AND {named.isolation()} = 'read_committed'")
        .select(*TRANSACTION),
    )
    proven = read.distinct().withColumn("proven", f.lit(True))
    fate = (
        f"CASE WHEN committed THEN '{COMMITTED}' WHEN aborted OR NOT asked THEN '{ABORTED}' "
        f"WHEN proven THEN '{COMMITTED}' ELSE '{UNKNOWN}' END AS fate"
    )
    return told.join(proven, on=TRANSACTION, how="left").selectExpr(*TRANSACTION, fate, "asked_at")


def positions_of(attempts: DataFrame, log: DataFrame, deliveries: DataFrame, named: Names) -> DataFrame:
    # What is not ours has a position all the same, and its flags say what is wrong with it; who it is, it cannot say.
    identity = [f"CASE WHEN {OURS} THEN {name} END AS {name}" for name in ("session", "seq")]
    acks = attempts.where("offset IS NOT NULL").selectExpr(
        "run", "topic", "told_partition AS partition", "offset", "session", "seq", "true AS ack"
    )
    found = log.selectExpr(*POSITION, *identity, "flags", "promised", "passed", "uncommitted", "committed")
    given = deliveries.selectExpr(
        *POSITION, *identity, "flags", "t AS seen", f"CASE WHEN NOT {named.observes()} THEN t END AS t"
    )
    return _stack(acks, found, given).groupBy(*POSITION).agg(*_exprs(
        # Of several who claim it the first one stands for the position in findings.
        "min(CASE WHEN session IS NOT NULL THEN struct(session, seq) END) AS holder",
        "min(session) AS session_min", "max(session) AS session_max", "min(seq) AS seq_min", "max(seq) AS seq_max",
        "coalesce(bool_or(ack), false) AS acked",
        "coalesce(bool_or(uncommitted), false) AS in_log",
        "coalesce(bool_or(committed), false) AS in_committed",
        "coalesce(bool_or(promised), false) AS promised",
        "coalesce(bool_or(passed), false) AS passed",
        "count(t) AS delivered", "min(t) AS t_first", "max(t) AS t_last", "min(seen) AS t_seen",
        "coalesce(bit_or(flags), 0) AS flags",
    ))  # fmt: skip


def _harmed(positions: DataFrame) -> DataFrame:
    """A payload that cannot be read is still the message that was acked there, or that others read there."""
    return positions.where(f"flags & {BAD_PAYLOAD} != 0 AND (in_log OR in_committed)").selectExpr(
        "run", "holder.session AS session", "holder.seq AS seq", "true AS harm"
    ).where("session IS NOT NULL")  # fmt: skip


def messages_of(
    attempts: DataFrame,
    log: DataFrame,
    deliveries: DataFrame,
    fates: DataFrame,
    named: Names,
    bounds: DataFrame,
    harmed: DataFrame | None = None,
) -> DataFrame:
    sent = attempts.selectExpr(
        *MESSAGE, "true AS attempt", "t", "t_outcome", "outcome", "txn", "key", "txn AS sent_txn",
        "key AS sent_key", "topic AS intended_topic", "partition AS intended_partition",
        "told_partition AS acked_partition", "offset AS acked_offset",
    )  # fmt: skip
    found = log.where(OURS).selectExpr(
        *MESSAGE, "topic", "partition", "offset", "txn", "key", "promised", "uncommitted", "committed",
    )  # fmt: skip
    starts = f.broadcast(bounds.select("run", "topic", "partition", "start"))
    given = deliveries.where(OURS).join(starts, on=["run", "topic", "partition"], how="left").selectExpr(
        *MESSAGE, "txn", "key", f"CASE WHEN NOT {named.observes()} THEN 1 END AS delivery",
        "partition AS seen_partition", "offset AS seen_offset", "offset < start AS seen_below",
    )  # fmt: skip
    harm = [harmed] if harmed is not None else []
    carried = (
        "t",
        "t_outcome",
        "outcome",
        "intended_topic",
        "intended_partition",
        "acked_partition",
        "acked_offset",
    )
    both = _stack(sent, found, given, *harm).groupBy(*MESSAGE).agg(*_exprs(
        "coalesce(bool_or(attempt), false) AS attempted",
        *(f"max({name}) AS {name}" for name in carried),
        "coalesce(max(sent_txn), max(txn)) AS txn",
        "coalesce(max(sent_key), max(key)) AS key",
        "coalesce(bool_or(uncommitted), false) AS in_log",
        "coalesce(bool_or(committed), false) AS in_committed",
        "coalesce(bool_or(promised), false) AS promised",
        ("coalesce(bool_or(harm), false)" if harm else "false") + " AS damaged",
        *(f"{side}({name}) AS {name}_{side}" for name in ("topic", "partition", "offset") for side in ("min", "max")),
        "count(delivery) AS delivered",
        "min(seen_partition) AS seen_partition", "min(seen_offset) AS seen_offset",
        "coalesce(bool_or(seen_below), false) AS seen_below",
        "min(key) != max(key) OR min(txn) != max(txn) AS altered",
    ))  # fmt: skip
    return both.join(f.broadcast(fates.drop("asked_at")), on=TRANSACTION, how="left").selectExpr(
        "*",
        f"coalesce(attempted AND (txn = 0 AND outcome = {ACKED} OR fate = '{COMMITTED}' AND outcome != {REJECTED}), false) AS owed",
        "promised OR damaged AS visible",
    )  # fmt: skip


def _pairs(messages: DataFrame) -> DataFrame:
    """Each message with the latest-sent one that stands before it in its partition.

    First places are compared: a late copy of a message is `duplicated`. A message in several partitions is a finding
    already and has no one place to compare.
    """
    placed = messages.where(
        "attempted AND (in_log OR in_committed) AND partition_min = partition_max AND topic_min = topic_max"
    )
    ahead = (
        "max(struct(seq, offset_min)) OVER (PARTITION BY run, session, topic_min, partition_min ORDER BY offset_min, seq "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ahead"
    )
    return placed.selectExpr("*", ahead).where("ahead.seq > seq").selectExpr(
        "run", "session", "topic_min AS topic", "partition_min AS partition", "t", "NULL AS scope",
        "seq AS first_seq", "offset_min AS first_offset", "ahead.seq AS second_seq", "ahead.offset_min AS second_offset",
    )  # fmt: skip


def _keys(messages: DataFrame, named: Names) -> DataFrame:
    keyed = messages.where("attempted AND (in_log OR in_committed) AND key >= 0 AND intended_partition < 0")
    return keyed.where(named.is_unchanged()).groupBy("run", f.col("topic_min").alias("topic"), "key").agg(
        *_exprs("count(1) AS records", "min(partition_min) AS partition_min", "max(partition_max) AS partition_max")
    )  # fmt: skip
