"""The tables that finders ask, by subject: positions, messages, keys, transactions and histories.

Finders compare rows in doubt only. They ask about a position (every row at it), a message (every row that names it), a
key or a transaction. The tables of a subject contain all rows of each of its items, so that a finder can be asked share by
share: about all rows at once in the driver if they are few, or about shares of them inside Spark tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from harness.contracts import Outcome
from harness.reconcile.find.findings import ID, sql
from harness.reconcile.find.known import Known

MESSAGE = ["run", "session", "seq"]
PARTITION = ["run", "topic", "partition"]
POSITION = [*PARTITION, "offset"]
# Of an effect.
ORIGIN = ["run", "origin_topic", "origin_partition", "origin_offset", "origin_session", "origin_seq"]

ACKED, REJECTED = int(Outcome.ACKED), int(Outcome.REJECTED)


@dataclass(frozen=True)
class PositionTables:
    """Every row at each position in doubt, and the effects that pipelines made of it."""

    known: Known
    deliveries: pl.DataFrame
    # One row a position: session, seq (of several claimants the first), contested (there are several); acked, in_log,
    # in_committed, passed (booleans); delivered (how often), t_first, t_last of its deliveries to the group; t_seen:
    # when any reader first got it; flags of all readings.
    positions: pl.DataFrame
    # run, session, seq, source (ack, final read or delivery), topic, partition, offset, t: messages that claim a position.
    claims: pl.DataFrame
    # Only with pipelines. Inputs that the group has passed: run, topic, partition, offset, session, seq, effects (how many it
    # must have). Effects: the table of that name in harness.reconcile.seal.schema.
    inputs: pl.DataFrame
    effects: pl.DataFrame


@dataclass(frozen=True)
class StepTables:
    """Steps, commits and assignments of readers in the partitions in doubt."""

    known: Known
    # From one record to the next that a reader got of a partition: run, topic, partition, reader, reader_name, scope (within
    # one poll or between two), excused (by a rebalance), and of both records t, offset, session, seq as from_… and to_….
    steps: pl.DataFrame
    # Records that the group could get: run, topic, partition, offset, session, seq (null: unknown).
    readable: pl.DataFrame
    # run, topic, partition, reader, reader_name, t, offset, given (null: nothing yet): commits beyond what the group was given.
    overcommits: pl.DataFrame
    # run, topic, partition, first, second (names of readers), t, until: two members owned the partition at once.
    shared: pl.DataFrame
    list_all: bool = False  # findings list all their records, however many there are

    def steps_named(self, condition: str) -> pl.DataFrame:
        """Return the steps that meet the condition, with the senders of both records: from_sender and sender."""
        steps = self.known.named(self.steps.filter(sql(condition)), "from_session", "from_sender")
        return self.known.named(steps, "to_session", "sender")

    def readable_named(self) -> pl.DataFrame:
        """Return the readable records with their senders and ids."""
        return self.known.named(self.readable).with_columns(sql(ID).alias("id"))


def between(
    ranges: pl.DataFrame, records: pl.DataFrame, first: str, below: str, at_most: int | None
) -> pl.DataFrame:
    """Return the ranges that have a record at `first` <= offset < `below`, with the number of records (n).

    Of the first `at_most` records (None: of all) also the offsets (between_offsets) and the ids (between_ids; a record whose
    message is unknown has none). Both sides are sorted once and cut by binary search, so the cost grows with the number of
    ranges plus the listed records, not with the product of both sides.
    """
    listed = records.sort(*PARTITION, "offset", "id", nulls_last=True)
    parts = listed.partition_by(PARTITION, as_dict=True)
    found: list[pl.DataFrame] = []
    for key, mine in ranges.partition_by(PARTITION, as_dict=True).items():
        if key not in parts:
            continue
        there = parts[key]
        offsets = there["offset"].to_numpy()
        starts = np.searchsorted(offsets, mine[first].to_numpy(), side="left")
        ends = np.searchsorted(offsets, mine[below].to_numpy(), side="left")
        counts = np.maximum(ends - starts, 0)
        lengths = counts if at_most is None else np.minimum(counts, at_most)
        # Rows of `there` that each range lists: 0 0 0 1 1 … beside 4 5 6 9 10 …
        range_of = np.repeat(np.arange(len(mine)), lengths)
        within = np.arange(len(range_of)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = there[starts[range_of] + within]
        lists = pl.DataFrame({"range": range_of, "o": rows["offset"], "i": rows["id"]}).group_by("range").agg(
            pl.col("o").alias("between_offsets"), pl.col("i").drop_nulls().alias("between_ids")
        )  # fmt: skip
        numbered = mine.with_columns(
            pl.Series("range", np.arange(len(mine))), pl.Series("n", counts, pl.Int64)
        )
        found.append(numbered.join(lists, on="range", how="inner").drop("range"))
    if found:
        return pl.concat(found)
    return ranges.clear().with_columns(
        pl.lit(0, pl.Int64).alias("n"),
        pl.lit(None, pl.List(pl.Int64)).alias("between_offsets"),
        pl.lit(None, pl.List(pl.String)).alias("between_ids"),
    )


@dataclass(frozen=True)
class MessageTables:
    """Every row that names one of the messages in doubt."""

    known: Known
    log: pl.DataFrame
    deliveries: pl.DataFrame
    # One row a message that was attempted, found or delivered. Of the attempt (null without one): attempted, t,
    # t_outcome, outcome, txn, key, intended_topic, intended_partition, acked_partition, acked_offset, fate.
    # Of the log: in_log, in_committed, promised, damaged (booleans), topic_min/max, partition_min/max, offset_min/max.
    # delivered: how often to the group. Of all readers: seen_partition, seen_offset, the lowest position of a delivery
    # (null: none), and seen_below: one of these is below the start of the log now. altered: key or transaction differ from
    # what was sent. owed: it must be in the log. visible: it is in the log that is owed.
    messages: pl.DataFrame
    missing: (
        pl.DataFrame
    )  # owed messages that are not in the log, as harness.reconcile.find.missing classes them
    places: pl.DataFrame  # run, session, seq, topic, partition, offset: where the log has it
    # Positions that the group passed and was never given: run, topic, partition, offset, session, seq, acked.
    passed_over: pl.DataFrame


@dataclass(frozen=True)
class OrderTables:
    """All messages in doubt of a session in a partition."""

    known: Known
    # Two messages of one session in one partition, in the order of their sends: run, session, topic, partition, t,
    # scope, first_seq, first_offset, second_seq, second_offset. Only pairs that are worth comparing.
    pairs: pl.DataFrame


@dataclass(frozen=True)
class KeyTables:
    """Every message in doubt of each key whose partition was left to the client."""

    known: Known
    # run, topic, key, session, seq, sender, producer, incarnation, t, t_outcome, outcome, partition_min/max, partition, offset
    # (its first place), given (when the group first got it).
    keyed: pl.DataFrame
    # All their places in the log: run, key_topic (as in keyed), key, topic, partition, offset, session, seq, sender, t.
    places: pl.DataFrame


@dataclass(frozen=True)
class TransactionTables:
    """Committed transactions with lost records."""

    known: Known
    gone: pl.DataFrame  # its lost records: run, session, txn, seq, sender, topic, partition, acked_offset, t
    visible: pl.DataFrame  # run, session, txn, there: how many of its records are visible in the whole log


@dataclass(frozen=True)
class HistoryTables:
    """Operations and the order between them; only histories have these."""

    known: Known
    log: pl.DataFrame
    # Two sends of one operation that follow each other in a partition, with the columns of `pairs` and txn.
    neighbours: pl.DataFrame
    # run, source, target, kind (wr, ww): which operation comes before which, by their numbers.
    edges: pl.DataFrame
