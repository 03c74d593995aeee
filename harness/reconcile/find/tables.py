"""The tables that finders ask, by subject: positions, messages, keys and transactions.

Finders compare rows in doubt only. They ask about a position (every row at it), a message (every row that names it), a
key or a transaction. The tables of a subject hold all rows of each of its items, so that a finder can be asked share by
share: of all rows at once in the driver when they are few, or of shares of them inside Spark tasks.

Conditions are SQL text: they read like the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa

from harness.contracts import Outcome
from harness.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile.fates import TRANSACTION, told
from harness.reconcile.find.sql import sql
from harness.reconcile.schema import SCHEMAS
from harness.reconcile.seal import Sealed

MESSAGE = ["run", "session", "seq"]
PARTITION = ["run", "topic", "partition"]
POSITION = [*PARTITION, "offset"]
ORIGIN = [
    "run",
    "origin_topic",
    "origin_partition",
    "origin_offset",
    "origin_session",
    "origin_seq",
]  # of an effect

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"
ACKED, REJECTED = int(Outcome.ACKED), int(Outcome.REJECTED)

Rows = Mapping[str, pl.DataFrame]  # attempts, log and deliveries


@dataclass(frozen=True)
class Known:
    """What is known of the runs besides the rows in doubt; small, and the same for every share."""

    senders: pl.DataFrame  # run, session, sender (<producer>.<incarnation>), producer, incarnation
    readers: (
        pl.DataFrame
    )  # run, reader, reader_name, isolation, observes (an observer, not a member of the group)
    runs: pl.DataFrame  # run, reads_committed (its group does), unchanged (its number of partitions)
    bounds: pl.DataFrame  # as in harness.reconcile.schema
    transactions: pl.DataFrame  # as harness.reconcile.fates tells

    @classmethod
    def of(cls, sealed: Sequence[Sealed], small: Mapping[str, pa.Table]) -> Known:
        return cls(
            senders_table(
                (one.run, s.session, s.producer, s.incarnation) for one in sealed for s in one.sessions
            ),
            readers_table(row for one in sealed for row in _readers(one)),
            runs_table(
                (one.run, one.group_isolation == "read_committed", one.topic_unchanged) for one in sealed
            ),
            table_of(small["bounds"]),
            table_of(told(small["transactions"])),
        )

    def with_proofs(self, proofs: pl.DataFrame) -> Known:
        """Transactions of which a read_committed reader got a record are committed unless certainly not (E2).

        `proofs`: run, session, txn, reader (-1: the final read_committed reading).
        """
        reading = self.readers.filter(sql("isolation = 'read_committed'")).select("run", "reader")
        given = proofs.with_columns(pl.col("reader").cast(pl.Int32)).join(
            reading, on=["run", "reader"], how="semi"
        )
        found = proofs.filter(sql("reader < 0"))
        proven = pl.concat([found.select(TRANSACTION), given.select(TRANSACTION)]).unique()
        transactions = self.transactions.join(
            proven.with_columns(proven=pl.lit(True)), on=TRANSACTION, how="left"
        )
        committed = sql("committed OR proven IS NOT NULL AND asked AND NOT aborted").alias("committed")
        return replace(self, transactions=transactions.with_columns(committed).drop("proven"))

    def named(self, rows: pl.DataFrame, session: str = "session", sender: str = "sender") -> pl.DataFrame:
        """The rows with the sender's name; a session without a session event is called by its number."""
        names = self.senders.select("run", pl.col("session").alias(session), pl.col("sender").alias(sender))
        number = pl.format("session {}", pl.col(session))
        return rows.join(names, on=["run", session], how="left").with_columns(
            pl.col(sender).fill_null(number)
        )


def senders_table(rows: Iterable[tuple[int, int, str, int]]) -> pl.DataFrame:
    """run, session, sender, producer, incarnation of (run, session, producer, incarnation)."""
    schema = {"run": pl.Int64, "session": pl.Int64, "producer": pl.String, "incarnation": pl.Int32}
    made = pl.DataFrame(list(rows), schema=schema, orient="row")
    return made.with_columns(sender=pl.format("{}.{}", "producer", "incarnation"))


def readers_table(rows: Iterable[tuple[int, int, str, str, bool]]) -> pl.DataFrame:
    schema = {
        "run": pl.Int64, "reader": pl.Int32, "reader_name": pl.String, "isolation": pl.String, "observes": pl.Boolean,
    }  # fmt: skip
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def runs_table(rows: Iterable[tuple[int, bool, bool]]) -> pl.DataFrame:
    schema = {"run": pl.Int64, "reads_committed": pl.Boolean, "unchanged": pl.Boolean}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def _readers(sealed: Sealed) -> Iterable[tuple[int, int, str, str, bool]]:
    observed = {one.reader: one.isolation for one in sealed.observers}
    for number, name in enumerate(sealed.reader_names):
        isolation = observed.get(number, sealed.group_isolation)
        yield sealed.run, number, name, isolation, number in observed


def table_of(rows: pa.Table) -> pl.DataFrame:
    made = pl.from_arrow(rows)
    assert isinstance(made, pl.DataFrame)
    return made


def without_rows(table: str) -> pl.DataFrame:
    return table_of(SCHEMAS[table].empty_table())


# --- the rows in doubt ----------------------------------------------------------------------------


def prepared(rows: Rows, known: Known) -> dict[str, pl.DataFrame]:
    """The rows with what several questions need.

    `ours`: its payload is intact and of this run, so that its fields can be believed. Of the log `readable`: the group
    could get it. Of deliveries reader_name, isolation and observes of its reader, and `shown_all`: to an observer of
    read_uncommitted, which is shown aborted records by design.
    """
    ours = (pl.col("flags") & (BAD_PAYLOAD | FOREIGN_RUN)) == 0
    log = rows["log"].join(known.runs, on="run", how="left")
    deliveries = rows["deliveries"].join(known.readers, on=["run", "reader"], how="left")
    return {
        "attempts": rows["attempts"],
        "log": log.with_columns(
            ours.alias("ours"),
            sql("CASE WHEN reads_committed THEN committed ELSE uncommitted END").alias("readable"),
        ),
        "deliveries": deliveries.with_columns(
            ours.alias("ours"),
            sql("observes AND isolation = 'read_uncommitted'").alias("shown_all"),
        ),
    }


# --- positions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PositionTables:
    """Every row at each position in doubt, and what readers and pipelines did there."""

    known: Known
    deliveries: pl.DataFrame
    # One row a position: session, seq (of several claimants the first), contested (there are several); acked, in_log,
    # in_committed, promised, passed (booleans); delivered (how often), t_first, t_last of its deliveries to the group; t_seen:
    # when any reader first got it; flags of all who read it.
    positions: pl.DataFrame
    # run, session, seq, source (ack, final read or delivery), topic, partition, offset, t: who claims to be at a position.
    claims: pl.DataFrame
    # Records that the group could get: run, topic, partition, offset, session, seq (null: cannot say).
    readable: pl.DataFrame
    # Steps of readers as in harness.reconcile.trails, with reader_name.
    steps: pl.DataFrame
    # run, topic, partition, reader, reader_name, t, offset, given (null: nothing yet): commits beyond what the group was given.
    overcommits: pl.DataFrame | None = None
    # run, topic, partition, first, second (names of readers), t, until: two members owned the partition at once.
    shared: pl.DataFrame | None = None
    # Of pipelines, as in harness.reconcile.provenance.
    inputs: pl.DataFrame | None = None
    effects: pl.DataFrame | None = None
    list_all: bool = False  # findings list everything that they concern, however much it is

    def steps_named(self, condition: str) -> pl.DataFrame:
        """The steps that meet the condition, with the senders of both records: from_sender and sender."""
        steps = self.known.named(self.steps.filter(sql(condition)), "from_session", "from_sender")
        return self.known.named(steps, "to_session", "sender")


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


def readable_of(log: pl.DataFrame) -> pl.DataFrame:
    return log.filter("readable").select(*POSITION, *_CLAIMANT)


def positions_of(rows: Rows) -> pl.DataFrame:
    acks = (
        rows["attempts"]
        .filter(sql("offset IS NOT NULL"))
        .select(
            "run", "topic", pl.col("told_partition").alias("partition"), "offset", "session", "seq",
            pl.lit(True).alias("ack"),
        )
    )  # fmt: skip
    # A damaged or foreign record has a position all the same, but cannot say which message it is.
    found = rows["log"].select(
        *POSITION, *_CLAIMANT, "flags", "promised", "passed", "uncommitted", "committed"
    )
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
            pl.col("promised").any(),
            pl.col("passed").any(),
            pl.col("t").count().cast(pl.Int64).alias("delivered"),
            pl.col("t").min().alias("t_first"),
            pl.col("t").max().alias("t_last"),
            pl.col("seen").min().alias("t_seen"),
            pl.col("flags").bitwise_or().fill_null(0),
        )
    )


def harmed_of(positions: pl.DataFrame) -> pl.DataFrame:
    """run, session, seq: a payload that cannot be read is still the message that was acked there, or that others read there."""
    harmed = positions.filter((pl.col("flags") & BAD_PAYLOAD) != 0)
    return harmed.filter(sql("(in_log OR in_committed) AND session IS NOT NULL")).select(MESSAGE)


# --- messages -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MessageTables:
    """Every row that names one of the messages in doubt; of one session all of them."""

    known: Known
    log: pl.DataFrame
    deliveries: pl.DataFrame
    # run, session, txn, fate: committed (told, or proven by E2), aborted (certainly not committed) or unknown;
    # asked_at: before that it cannot have been committed (0: unknown).
    fates: pl.DataFrame
    # One row a message that was attempted, found or delivered. Of the attempt (null without one): attempted, t,
    # t_outcome, outcome, txn, key, intended_topic, intended_partition, acked_partition, acked_offset, fate.
    # Of the log: in_log, in_committed, promised, damaged (booleans), topic_min/max, partition_min/max, offset_min/max.
    # delivered: how often to the group. Of all readers: seen_partition, seen_offset, the lowest that one got it at (null:
    # none did), and seen_below: one of these is below the start of the log now. altered: key or transaction differ from
    # what was sent. owed: it must be in the log. visible: it is in the log that is owed.
    messages: pl.DataFrame
    places: pl.DataFrame  # run, session, seq, topic, partition, offset: where the log has it
    # Two messages of one session in one partition, in the order of their sends: run, session, topic, partition, t,
    # scope, first_seq, first_offset, second_seq, second_offset. Only pairs that are worth comparing.
    pairs: pl.DataFrame
    passed_over: pl.DataFrame | None = (
        None  # positions that the group passed and was never given, as in PositionTables
    )


_FATE = (
    f"CASE WHEN committed THEN '{COMMITTED}' WHEN aborted OR NOT asked THEN '{ABORTED}' "
    f"WHEN proven THEN '{COMMITTED}' ELSE '{UNKNOWN}' END"
)


def fates_of(transactions: pl.DataFrame, log: pl.DataFrame, deliveries: pl.DataFrame) -> pl.DataFrame:
    """What became of each transaction. Never asked to commit, or an acked abort: certainly aborted."""
    # E2: a record of it that a read_committed reader got proves an unknown transaction committed.
    found = log.filter(sql("ours AND committed AND txn > 0")).select(TRANSACTION)
    given = deliveries.filter(sql("ours AND txn > 0 AND isolation = 'read_committed'")).select(TRANSACTION)
    proven = pl.concat([found, given]).unique().with_columns(proven=pl.lit(True))
    asked = transactions.join(proven, on=TRANSACTION, how="left")
    return asked.select(*TRANSACTION, sql(_FATE).alias("fate"), "asked_at")


_CARRIED = (
    "t",
    "t_outcome",
    "outcome",
    "intended_topic",
    "intended_partition",
    "acked_partition",
    "acked_offset",
)
_OWED = f"attempted AND (txn = 0 AND outcome = {ACKED} OR fate = '{COMMITTED}' AND outcome != {REJECTED})"


def messages_of(
    rows: Rows, fates: pl.DataFrame, bounds: pl.DataFrame, harmed: pl.DataFrame | None = None
) -> pl.DataFrame:
    sent = rows["attempts"].select(
        *MESSAGE, pl.lit(True).alias("attempt"), "t", "t_outcome", "outcome", "txn", "key",
        sent_txn="txn", sent_key="key", intended_topic="topic", intended_partition="partition",
        acked_partition="told_partition", acked_offset="offset",
    )  # fmt: skip
    found = rows["log"].filter("ours").select(
        *MESSAGE, "topic", "partition", "offset", "txn", "key", "promised", "uncommitted", "committed"
    )  # fmt: skip
    starts = bounds.select(*PARTITION, "start")
    given = rows["deliveries"].filter("ours").join(starts, on=PARTITION, how="left").select(
        *MESSAGE, "txn", "key", delivery=~pl.col("observes"), seen_partition="partition", seen_offset="offset",
        seen_below=sql("offset < start"),
    )  # fmt: skip
    harm = [] if harmed is None else [harmed.select(*MESSAGE, pl.lit(True).alias("harm"))]
    key, txn = pl.col("key"), pl.col("txn")
    both = pl.concat([sent, found, given, *harm], how="diagonal").group_by(MESSAGE).agg(
        pl.col("attempt").any().alias("attempted"),
        *(pl.col(name).max() for name in _CARRIED),
        pl.coalesce(pl.col("sent_txn").max(), txn.max()).alias("txn"),
        pl.coalesce(pl.col("sent_key").max(), key.max()).alias("key"),
        pl.col("uncommitted").any().alias("in_log"),
        pl.col("committed").any().alias("in_committed"),
        pl.col("promised").any(),
        (pl.col("harm").any() if harm else pl.lit(False)).alias("damaged"),
        *(pl.col(name).min().alias(f"{name}_min") for name in ("topic", "partition", "offset")),
        *(pl.col(name).max().alias(f"{name}_max") for name in ("topic", "partition", "offset")),
        pl.col("delivery").sum().cast(pl.Int64).alias("delivered"),
        pl.col("seen_partition").min(),
        pl.col("seen_offset").min(),
        pl.col("seen_below").any(),
        ((key.min() != key.max()) | (txn.min() != txn.max())).alias("altered"),
    )  # fmt: skip
    return both.join(fates.drop("asked_at"), on=TRANSACTION, how="left").with_columns(
        sql(_OWED).fill_null(False).alias("owed"), sql("promised OR damaged").alias("visible")
    )


def places_of(log: pl.DataFrame) -> pl.DataFrame:
    return log.filter("ours").select(*MESSAGE, "topic", "partition", "offset").unique()


def placed_of(messages: pl.DataFrame) -> pl.DataFrame:
    """Messages whose order can be compared, each with its first place.

    A late copy of a message is `duplicated`. A message in several partitions is a finding already and has no one place
    to compare.
    """
    return messages.filter(sql(
        "attempted AND (in_log OR in_committed) AND partition_min = partition_max AND topic_min = topic_max"
    )).select(*MESSAGE, "topic_min", "partition_min", "offset_min", "t")  # fmt: skip


def pairs_of(placed: pl.DataFrame) -> pl.DataFrame:
    """Each message with the latest-sent one of its session that is before it in its partition."""
    placed = placed.sort("offset_min", "seq")
    lane = ["run", "session", "topic_min", "partition_min"]
    # seq     1 4 2 3 5      highest  1 4 4 4 5      ahead  - 1 4 4 4: 2 and 3 are behind 4
    highest = pl.col("seq").cum_max()
    reached = pl.when(pl.col("seq") == highest).then(pl.col("offset_min")).forward_fill()
    behind = placed.with_columns(
        highest.shift(1).over(lane).alias("second_seq"), reached.shift(1).over(lane).alias("second_offset")
    ).filter(sql("second_seq > seq"))
    return behind.select(
        "run", "session", pl.col("topic_min").alias("topic"), pl.col("partition_min").alias("partition"), "t",
        pl.lit(None, pl.String).alias("scope"), pl.col("seq").alias("first_seq"), pl.col("offset_min").alias("first_offset"),
        "second_seq", "second_offset",
    )  # fmt: skip


# --- keys and transactions ------------------------------------------------------------------------

_KEYED = "attempted AND (in_log OR in_committed) AND key >= 0 AND intended_partition < 0"


@dataclass(frozen=True)
class KeyTables:
    """Every message in doubt of each key whose partition was left to the client."""

    known: Known
    # run, topic, key, session, seq, sender, producer, incarnation, t, t_outcome, outcome, partition_min/max, partition, offset
    # (its first place), given (when the group first got it).
    keyed: pl.DataFrame
    places: (
        pl.DataFrame
    )  # run, topic, key, partition, offset, session, seq, sender, t: all their places in the log


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
    """One message may be in several partitions, and in another topic: each place with the key's first topic and its own."""
    about = keyed.select(*MESSAGE, pl.col("topic").alias("key_topic"), "key", "sender", "t")
    return about.join(places, on=MESSAGE, how="inner")


@dataclass(frozen=True)
class TransactionTables:
    """Committed transactions with lost records."""

    known: Known
    # run, session, txn, sender, ids and offsets (lists) of its lost records, topic, partition and seq of the first,
    # missing (how many), t.
    gone: pl.DataFrame
    visible: pl.DataFrame  # run, session, txn, there: how many of its records are visible in the whole log


# --- histories ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HistoryTables:
    """Of histories only: what finders ask of operations and of the order between them."""

    known: Known
    log: pl.DataFrame
    # Two sends of one operation that follow each other in a partition, with the columns of `pairs` and txn.
    neighbours: pl.DataFrame
    edges: (
        pl.DataFrame
    )  # run, source, target, kind (wr, ww): which operation comes before which, by their numbers
