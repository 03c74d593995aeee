"""Histories as the tables that finders ask: the same tables as of a ledger, each history as a run.

harness.histories.rows makes their rows. There is no final reading: the log is reconstructed from trustworthy acks and from
what polls returned (E1-E3), and a message is visible if an ok poll got it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from harness.contracts import Outcome
from harness.histories.rows import READS, HistoryRows, Numbered
from harness.reconcile.find import derive
from harness.reconcile.find.derive import prepared
from harness.reconcile.find.findings import sql
from harness.reconcile.find.known import (
    COMMITTED,
    Known,
    fates_of,
    readers_table,
    runs_table,
    table_of,
    without_rows,
)
from harness.reconcile.find.missing import classed
from harness.reconcile.find.tables import (
    MESSAGE,
    POSITION,
    HistoryTables,
    MessageTables,
    OrderTables,
    PositionTables,
    StepTables,
)
from harness.reconcile.screen.transaction_fates import TRANSACTION, fates_by_events
from harness.reconcile.seal.schema import SCHEMAS

_REJECTED = int(Outcome.REJECTED)


@dataclass(frozen=True)
class SubjectTables:
    """The tables of histories, by subject."""

    positions: PositionTables
    steps: StepTables
    messages: MessageTables
    order: OrderTables
    history: HistoryTables


def tables(histories: Mapping[int, Numbered], *, ww_deps: bool) -> SubjectTables:
    """Return the tables of histories by their numbers, which become `run`."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run, one in histories.items():
        HistoryRows(run, one, rows).add()
    made = {
        name: table_of(
            pa.Table.from_pylist(rows[name], schema=READS if name == "deliveries" else SCHEMAS[name])
        )
        for name in ("attempts", "deliveries", "bounds")
    }
    processes = {run: range(len(one.history.processes)) for run, one in histories.items()}
    readers = [(run, p, str(p), "read_committed", False) for run, all_of in processes.items() for p in all_of]
    listed = pa.Table.from_pylist(rows["transactions"], schema=SCHEMAS["transactions"])
    transactions = table_of(fates_by_events(listed))
    # E2: an operation of which another one read a message has happened.
    proven = made["deliveries"].filter(sql("txn > 0 AND op != txn")).select(TRANSACTION)
    known = Known(
        _senders(processes),
        readers_table(readers),
        runs_table((run, True, True) for run in histories),
        made["bounds"],
        fates_of(transactions, proven),
    )
    attempts = _testifying(made["attempts"], known.fates)
    read = {"attempts": attempts, "log": _log(attempts, made["deliveries"]), "deliveries": made["deliveries"]}
    all_rows = prepared(read, known)
    log, reads = all_rows["log"], all_rows["deliveries"]
    none = {name: without_rows(name) for name in ("log", "effects")}
    harmed = log.select(MESSAGE).clear()
    messages = _owed_when_passed(derive.messages_of(all_rows, known, harmed), reads)
    places = log.select(*MESSAGE, "topic", "partition", "offset")
    consecutive = _consecutive(attempts, log)
    claims = derive.claims_of({**all_rows, "log": prepared({**read, "log": none["log"]}, known)["log"]})
    return SubjectTables(
        PositionTables(known, reads, derive.positions_of(all_rows), claims, none["effects"], none["effects"]),
        StepTables(known, _steps(reads), places, reads.clear(), reads.clear(), list_all=True),
        MessageTables(known, log, reads, messages, classed(messages, known.bounds), places, reads.clear()),
        OrderTables(known, _pairs(consecutive)),
        HistoryTables(known, log, _neighbours(consecutive), _edges(log, reads, known.fates, ww_deps=ww_deps)),
    )


def _senders(processes: Mapping[int, range]) -> pl.DataFrame:
    """Return the senders, named by their numbers; the last one of a history has the messages without a send."""
    rows = [(run, p, str(p), str(p), 0) for run, all_of in processes.items() for p in range(len(all_of) + 1)]
    schema = {
        "run": pl.Int64,
        "session": pl.Int64,
        "sender": pl.String,
        "producer": pl.String,
        "incarnation": pl.Int32,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _testifying(attempts: pl.DataFrame, fates: pl.DataFrame) -> pl.DataFrame:
    """Return the attempts without the offsets that rejected or unproven sends claim (E3)."""
    proven = fates.filter(pl.col("fate") == COMMITTED).select(*TRANSACTION, proven=pl.lit(True))
    return attempts.join(proven, on=TRANSACTION, how="left").with_columns(
        pl.when("proven").then(pl.col("offset")).alias("offset")
    ).drop("proven")  # fmt: skip


def _log(attempts: pl.DataFrame, reads: pl.DataFrame) -> pl.DataFrame:
    """Return the known positions of each message, and if an ok poll got it there."""
    columns = [*MESSAGE, "topic", "partition", "offset", "txn", "key"]
    acks = attempts.filter(sql("offset IS NOT NULL")).with_columns(
        pl.col("told_partition").alias("partition"), ok=pl.lit(False)
    )
    places = pl.concat([acks.select(*columns, "ok"), reads.select(*columns, "ok")]).group_by(columns)
    found = places.agg(pl.col("ok").any()).with_columns(
        flags=pl.lit(0, pl.Int32), t=pl.lit(None, pl.Int64), uncommitted=pl.lit(True), committed=pl.col("ok"),
        promised=pl.col("ok"), passed=pl.lit(False),
    )  # fmt: skip
    return pl.concat([without_rows("log"), found.drop("ok")], how="diagonal")


def _owed_when_passed(messages: pl.DataFrame, reads: pl.DataFrame) -> pl.DataFrame:
    """Keep a message owed only if an ok poll of its partition has read beyond it; others may still be read."""
    highest = reads.filter("ok").group_by(
        "run", pl.col("topic").alias("intended_topic"), pl.col("partition").alias("intended_partition")
    ).agg(pl.col("offset").max().alias("passed_up_to"))  # fmt: skip
    joined = messages.join(highest, on=["run", "intended_topic", "intended_partition"], how="left")
    owed = sql("owed AND offset_min < passed_up_to").fill_null(False)
    return joined.with_columns(owed.alias("owed")).drop("passed_up_to")


def _consecutive(attempts: pl.DataFrame, log: pl.DataFrame) -> pl.DataFrame:
    """Return each send of a process with the one before it in the same partition; failed sends do not count.

    Columns as in `pairs`, and txn and first_txn. If a message has several known places, the first one counts.
    """
    known = log.group_by(MESSAGE).agg(pl.col("offset").min().alias("second_offset"))
    sends = attempts.filter(pl.col("outcome") != _REJECTED).join(known, on=MESSAGE, how="left").sort("seq")
    lane = ["run", "session", "topic", "partition"]
    before = {"first_seq": "seq", "first_offset": "second_offset", "first_txn": "txn"}
    both = sends.with_columns(pl.col(name).shift(1).over(lane).alias(first) for first, name in before.items())
    return both.filter(pl.col("first_seq").is_not_null()).select(
        *lane,
        "t",
        "first_seq",
        "first_offset",
        pl.col("seq").alias("second_seq"),
        "second_offset",
        "txn",
        "first_txn",
    )


def _pairs(consecutive: pl.DataFrame) -> pl.DataFrame:
    scope = sql("CASE WHEN first_txn = txn THEN 'within' ELSE 'between' END")
    return consecutive.with_columns(scope.alias("scope"))


def _neighbours(consecutive: pl.DataFrame) -> pl.DataFrame:
    """Return pairs of sends of one operation that follow each other in a partition, with their known positions."""
    known = "first_txn = txn AND first_offset IS NOT NULL AND second_offset IS NOT NULL"
    return consecutive.filter(sql(known)).drop("first_txn")


def _steps(reads: pl.DataFrame) -> pl.DataFrame:
    """Return steps of readers, within an operation and from the last ok poll to the next operation (E5-E7)."""
    lane = ["run", "reader", "topic", "partition"]
    source = pl.struct("t", "offset", "session", "seq", "forgotten", "touched_before")
    ordered = reads.sort("op", "place_in_op")
    placed = ordered.with_columns(
        source.shift(1).over([*lane, "op"]).alias("inside"),
        pl.when("ok").then(source).forward_fill().shift(1).over(lane).alias("before"),
    ).with_columns(pl.col("inside").is_not_null().alias("within"))  # fmt: skip
    both = placed.with_columns(pl.coalesce("inside", "before").alias("source")).filter(
        pl.col("source").is_not_null()
    ).unnest("source", separator="_")  # fmt: skip
    kept = both.filter(sql("within OR source_forgotten = forgotten"))
    return kept.select(
        *lane, "reader_name", sql("CASE WHEN within THEN 'within' ELSE 'between' END").alias("scope"),
        sql("touched_after > source_touched_before").alias("excused"),
        *(pl.col(f"source_{name}").alias(f"from_{name}") for name in ("t", "offset", "session", "seq")),
        *(pl.col(name).alias(f"to_{name}") for name in ("t", "offset", "session", "seq")),
    )  # fmt: skip


def _edges(log: pl.DataFrame, reads: pl.DataFrame, fates: pl.DataFrame, *, ww_deps: bool) -> pl.DataFrame:
    """Return run, source, target, kind: operations that are known to come before others, by their numbers."""
    happened = fates.filter(pl.col("fate") == COMMITTED).select("run", "txn")
    by_happened = reads.filter(sql("op != txn")).join(happened, on=["run", "txn"], how="semi")
    read = by_happened.join(happened, left_on=["run", "op"], right_on=["run", "txn"], how="semi")
    edges = read.select("run", source="txn", target="op", kind=pl.lit("wr")).unique()
    if not ww_deps:
        return edges
    placed = (
        log.join(happened, on=["run", "txn"], how="semi")
        .group_by(POSITION)
        .agg(pl.col("txn").min().alias("target"))
    )
    in_order = placed.sort("offset").with_columns(
        pl.col("target").shift(1).over(["run", "topic", "partition"]).alias("source"), kind=pl.lit("ww")
    )
    follows = in_order.filter(sql("source != target")).select("run", "source", "target", "kind").unique()
    return pl.concat([edges, follows])
