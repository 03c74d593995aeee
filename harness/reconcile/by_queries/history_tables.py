"""Histories as the tables that finders ask: the same ones as of a ledger, a history a run.

Times are line numbers, an operation is a transaction (its number is its line + 1), a process is a session and a reader.
There is no final reading: what acks that can be relied on and what polls have shown is taken for the log (E1-E3), and
what an ok poll got is what can be seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from harness.contracts import Outcome
from harness.histories.parse import ASSIGN, SUBSCRIBE, Operation
from harness.histories.tables import Numbered
from harness.reconcile.by_queries import tables as ledger
from harness.reconcile.by_queries.look import PARTITION, kept
from harness.reconcile.by_queries.names import Names
from harness.reconcile.by_queries.rows_here import local
from harness.reconcile.by_queries.tables import COMMITTED, MESSAGE, POSITION, Tables
from harness.reconcile.fates import TRANSACTION, told
from harness.reconcile.schema import SCHEMAS

# What a history says of a read besides what a ledger does: which operation it belongs to and where in it, whether it
# moves the reader's position (E5), how often that position was forgotten (E6) and how many rebalances had touched
# the partition before the operation and by its end (E7).
_READS = pa.schema([
    *SCHEMAS["deliveries"], ("op", pa.int64()), ("place_in_op", pa.int64()), ("ok", pa.bool_()),
    ("forgotten", pa.int64()), ("touched_before", pa.int64()), ("touched_after", pa.int64()),
])  # fmt: skip
_REJECTED = int(Outcome.REJECTED)


def number_of(operation: Operation) -> int:
    return operation.line + 1


def tables(spark: SparkSession, histories: Sequence[Numbered], *, ww_deps: bool) -> Tables:
    """The tables of all histories; `run` is the place in `histories`."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run, one in enumerate(histories):
        _Rows(run, one, rows).add()
    arrow = {
        name: pa.Table.from_pylist(rows[name], schema=_READS if name == "deliveries" else SCHEMAS[name])
        for name in ("attempts", "deliveries", "transactions", "bounds")
    }
    named = Names(
        {
            (run, p): str(p)
            for run, one in enumerate(histories)
            for p in range(len(one.history.processes) + 1)
        },
        {(run, p): str(p) for run, one in enumerate(histories) for p in range(len(one.history.processes))},
        dict.fromkeys(range(len(histories)), "read_committed"),
        dict.fromkeys(range(len(histories)), True),
    )
    reads = local(spark, arrow["deliveries"])
    no_log = local(spark, SCHEMAS["log"].empty_table())

    def fixed(frame: DataFrame) -> DataFrame:
        return kept(spark, frame, few=True)

    fates = fixed(
        ledger.fates_of(local(spark, told(arrow["transactions"])), no_log, reads.where("op != txn"), named)
    )
    attempts = fixed(_testifying(local(spark, arrow["attempts"]), fates))
    log = fixed(_log(attempts, reads))
    bounds = local(spark, arrow["bounds"])
    messages = fixed(_owed_when_passed(ledger.messages_of(attempts, log, reads, fates, named, bounds), reads))
    places = log.select(*MESSAGE, "topic", "partition", "offset")
    return Tables(
        attempts=attempts, deliveries=reads, log=log, bounds=bounds, names=named,
        fates=fates, messages=messages, positions=ledger.positions_of(attempts, log, reads, named),
        claims=ledger.claims_of(attempts, no_log, reads), places=places,
        pairs=_pairs(attempts, log), keys=messages.where("false"),
        steps=_steps(reads), readable=places, overcommits=reads.where("false"), rest_of=lambda transactions: transactions, tells_all=True,
        neighbours=_neighbours(attempts, log), edges=fixed(_edges(log, reads, fates, ww_deps=ww_deps)),
    )  # fmt: skip


class _Rows:
    """The rows of one history, table by table."""

    def __init__(self, run: int, numbered: Numbered, rows: dict[str, list[dict[str, Any]]]) -> None:
        self._run, self._numbered, self._history, self._rows = run, numbered, numbered.history, rows
        self._forgotten: dict[tuple[int, int], int] = defaultdict(int)  # process, partition
        self._touched: dict[tuple[int, int], int] = defaultdict(int)

    def _add(self, table: str, **row: Any) -> None:
        self._rows[table].append({"run": self._run, **row})

    def add(self) -> None:
        # There is no final reading that could be incomplete: `lost` compares with what ok polls have passed.
        for partition in range(len(self._history.partitions)):
            self._add("bounds", topic=0, partition=partition, whole=True, whole_for_group=True)
        for operation in self._history.operations:
            self._add_transaction(operation)
            self._add_sends(operation)
            self._add_reads(operation)

    def _add_transaction(self, operation: Operation) -> None:
        about = {"session": operation.process, "txn": number_of(operation), "did": "commit"}
        self._add("transactions", step="end", t=operation.invoked or 0, **about)
        if operation.outcome is not Outcome.UNKNOWN:
            self._add("transactions", step="ended", t=operation.line, outcome=int(operation.outcome), **about)

    def _add_sends(self, operation: Operation) -> None:
        for sent in operation.sends:
            session, seq = self._numbered.ids[sent.partition, sent.message]
            self._add(
                "attempts", session=session, seq=seq, t=operation.line, topic=0, partition=sent.partition, key=-1,
                txn=number_of(operation), outcome=int(operation.outcome), t_outcome=operation.line,
                told_partition=sent.partition, offset=sent.offset, error=0,
            )  # fmt: skip

    def _add_reads(self, operation: Operation) -> None:
        process = operation.process
        before = {p: self._touched[process, p] for p in range(len(self._history.partitions))}
        for partition in operation.rebalanced:
            self._touched[process, partition] += 1
        if operation.kind in (ASSIGN, SUBSCRIBE) and operation.outcome is not Outcome.REJECTED:
            for partition in set(range(len(self._history.partitions))) - set(operation.partitions):
                self._forgotten[process, partition] += 1
        for place, read in enumerate(operation.reads):
            session, seq = self._numbered.ids[read.partition, read.message]
            writer = self._history.writers.get((read.partition, read.message))
            self._add(
                "deliveries", t=operation.line, topic=0, partition=read.partition, offset=read.offset, session=session,
                seq=seq, txn=number_of(writer) if writer else 0, key=-1, intended_partition=read.partition, flags=0,
                leader_epoch=-1, reader=process, generation=0, op=number_of(operation), place_in_op=place,
                ok=operation.outcome is Outcome.ACKED, forgotten=self._forgotten[process, read.partition],
                touched_before=before[read.partition], touched_after=self._touched[process, read.partition],
            )  # fmt: skip


def _testifying(attempts: DataFrame, fates: DataFrame) -> DataFrame:
    """Offsets that a rejected or unproven send claims are forgotten (E3)."""
    proven = fates.where(f"fate = '{COMMITTED}'").selectExpr(*TRANSACTION, "true AS proven")
    columns = [
        name if name != "offset" else "CASE WHEN proven THEN offset END AS offset"
        for name in attempts.columns
    ]
    return attempts.join(proven, on=TRANSACTION, how="left").selectExpr(*columns)


def _log(attempts: DataFrame, reads: DataFrame) -> DataFrame:
    """Where each message is known to stand, and whether an ok poll got it there."""
    acks = attempts.where("offset IS NOT NULL").selectExpr(
        *MESSAGE, "topic", "told_partition AS partition", "offset", "txn", "key", "false AS ok"
    )
    read = reads.select(*MESSAGE, "topic", "partition", "offset", "txn", "key", "ok")
    places = acks.unionByName(read).groupBy(*MESSAGE, "topic", "partition", "offset", "txn", "key")
    return places.agg(f.expr("bool_or(ok) AS ok")).selectExpr(
        "*", "0 AS flags", "CAST(NULL AS bigint) AS t", "partition AS intended_partition", "-1 AS leader_epoch",
        "true AS uncommitted", "ok AS committed", "ok AS promised", "false AS passed",
    )  # fmt: skip


def _owed_when_passed(messages: DataFrame, reads: DataFrame) -> DataFrame:
    """A message is owed when an ok poll of its partition has read beyond it; before that it may come yet."""
    highest = (
        reads.where("ok")
        .groupBy(
            "run", f.col("topic").alias("intended_topic"), f.col("partition").alias("intended_partition")
        )
        .agg(f.expr("max(offset) AS passed_up_to"))
    )
    kept = [name for name in messages.columns if name != "owed"]
    return messages.join(
        f.broadcast(highest), on=["run", "intended_topic", "intended_partition"], how="left"
    ).selectExpr(*kept, "coalesce(owed AND offset_min < passed_up_to, false) AS owed")


def _known_places(log: DataFrame) -> DataFrame:
    """One place a message: the first of those where it is known to stand."""
    return log.groupBy(*MESSAGE).agg(f.expr("min(offset) AS known"))


def _consecutive(attempts: DataFrame, log: DataFrame) -> DataFrame:
    """Each send of a process with the one before it in the same partition; those that failed do not count."""
    sends = (
        attempts.where(f"outcome != {_REJECTED}")
        .drop("offset")
        .join(_known_places(log), on=MESSAGE, how="left")
    )
    before = "OVER (PARTITION BY run, session, topic, partition ORDER BY seq)"
    return sends.selectExpr("*", f"lag(struct(seq, known, txn)) {before} AS before").where(
        "before IS NOT NULL"
    )


def _pairs(attempts: DataFrame, log: DataFrame) -> DataFrame:
    return _consecutive(attempts, log).selectExpr(
        "run", "session", "topic", "partition", "t", "CASE WHEN before.txn = txn THEN 'within' ELSE 'between' END AS scope",
        "before.seq AS first_seq", "before.known AS first_offset", "seq AS second_seq", "known AS second_offset",
    )  # fmt: skip


def _neighbours(attempts: DataFrame, log: DataFrame) -> DataFrame:
    """Two sends of one operation, one after the other in a partition, and where they are known to stand."""
    return (
        _consecutive(attempts, log)
        .where("before.txn = txn AND known IS NOT NULL AND before.known IS NOT NULL")
        .selectExpr(
            "run", "session", "topic", "partition", "t", "txn",
            "before.seq AS first_seq", "before.known AS first_offset", "seq AS second_seq", "known AS second_offset",
        )
    )  # fmt: skip


def _steps(reads: DataFrame) -> DataFrame:
    """Steps of readers, within an operation and from the last ok poll to the next operation (E5-E7)."""
    row = "struct(t, offset, session, seq, forgotten, touched_before)"
    stood = reads.selectExpr(
        "*",
        f"lag({row}) OVER (PARTITION BY run, reader, topic, partition, op ORDER BY place_in_op) AS inside",
        f"last_value(CASE WHEN ok THEN {row} END, true) OVER (PARTITION BY run, reader, topic, partition "
        "ORDER BY op, place_in_op ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before",
    )
    both = stood.selectExpr("*", "coalesce(inside, before) AS source", "inside IS NOT NULL AS within")
    return both.where("source IS NOT NULL AND (within OR source.forgotten = forgotten)").selectExpr(
        *PARTITION, "reader", "CASE WHEN within THEN 'within' ELSE 'between' END AS scope",
        "touched_after > source.touched_before AS excused",
        *(f"source.{name} AS from_{name}" for name in ("t", "offset", "session", "seq")),
        *(f"{name} AS to_{name}" for name in ("t", "offset", "session", "seq")),
    )  # fmt: skip


def _edges(log: DataFrame, reads: DataFrame, fates: DataFrame, *, ww_deps: bool) -> DataFrame:
    """run, source, target, kind: operations that are known to come before others, by their numbers."""
    happened = f.broadcast(fates.where(f"fate = '{COMMITTED}'").selectExpr("run", "txn"))
    written = reads.where("op != txn").join(happened, on=["run", "txn"], how="left_semi")
    read = written.withColumnsRenamed({"txn": "source", "op": "txn"}).join(
        happened, on=["run", "txn"], how="left_semi"
    )
    edges = read.selectExpr("run", "source", "txn AS target", "'wr' AS kind").distinct()
    if not ww_deps:
        return edges
    placed = (
        log.join(happened, on=["run", "txn"], how="left_semi")
        .groupBy(*POSITION)
        .agg(f.expr("min(txn) AS target"))
    )
    in_order = placed.selectExpr(
        "run",
        "lag(target) OVER (PARTITION BY run, topic, partition ORDER BY offset) AS source",
        "target",
        "'ww' AS kind",
    )
    return edges.unionByName(in_order.where("source != target").distinct())
