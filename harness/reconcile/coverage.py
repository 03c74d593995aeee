"""Coverage: the proof of what a run exercised. Without it a clean result would prove nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from harness.contracts import Outcome
from harness.reconcile.seal import Notes
from harness.reconcile.tables import ABORTED, COMMITTED, UNKNOWN, Tables

# Events that are few in any run, and that coverage reads one by one. The others are counted by Spark.
RARE = ("step", "worker", "window", "read", "drain", "error", "lost_producer", "unflushed")


def numbers(tables: Tables) -> DataFrame:
    """run, name, value: everything about a run that is one number."""
    frames = [
        _attempts(tables),
        _records(tables),
        _long(_deliveries(tables)),
        _long(_fates(tables)),
        _long(tables.assignments.groupBy("run").agg(_count(f.col("how") == "assigned").alias("rebalances"))),
        _long(tables.events.groupBy("run").agg(_count(f.col("event") == "commit").alias("commits"))),
        _long(tables.sessions.groupBy("run").agg(
            f.count(f.lit(1)).alias("sessions"), f.max(f.coalesce("in_flight", f.lit(0))).alias("in_flight_max"),
            f.min(f.coalesce("in_flight", f.lit(0))).alias("in_flight_min"),
        )),
    ]  # fmt: skip
    return reduce(DataFrame.unionByName, frames)


def _long(wide: DataFrame) -> DataFrame:
    """One row a number instead of one column a number."""
    values = [f.col(c).cast("double").alias(c) for c in wide.columns if c != "run"]
    return wide.select("run", *values).unpivot("run", None, "name", "value")


def _count(condition: Column) -> Column:
    return f.count_if(f.coalesce(condition, f.lit(False)))


def _attempts(tables: Tables) -> DataFrame:
    """Outcomes, and the acks before the first window was opened and after the last one was closed."""
    span = tables.windows.groupBy("run").agg(f.min("opened").alias("first"), f.max("closed").alias("last"))
    acked = f.col("outcome") == int(Outcome.ACKED)
    before = acked & f.coalesce(f.col("t_outcome") < f.col("first"), f.lit(True))
    after = acked & f.coalesce(f.col("t_outcome") > f.col("last"), f.lit(True))
    return _long(
        tables.attempts.join(f.broadcast(span), on="run", how="left")
        .groupBy("run")
        .agg(
            f.count(f.lit(1)).alias("attempted"),
            _count(acked).alias("acked"),
            _count(f.col("outcome") == int(Outcome.REJECTED)).alias("rejected"),
            _count(f.col("outcome") == int(Outcome.UNKNOWN)).alias("unknown"),
            _count(before).alias("progress_before"),
            _count(after).alias("progress_after"),
        )
    )


def _records(tables: Tables) -> DataFrame:
    """`in_log` is of the log that is owed: in exactly-once that is what read_committed shows."""
    kind = tables.runs.select("run", "transactional")
    owed_log = f.when(f.col("transactional"), f.col("in_committed")).otherwise(f.col("in_log"))
    return _long(
        tables.positions.join(f.broadcast(kind), on="run", how="inner")
        .groupBy("run")
        .agg(_count(owed_log).alias("in_log"), _count(f.col("in_log")).alias("in_log_uncommitted"))
    )


def _deliveries(tables: Tables) -> DataFrame:
    return tables.deliveries.groupBy("run").agg(
        f.count(f.lit(1)).alias("delivered"), f.count_distinct("reader").alias("readers")
    )


def _fates(tables: Tables) -> DataFrame:
    fates = (COMMITTED, ABORTED, UNKNOWN)
    return tables.fates.groupBy("run").agg(
        *(_count(f.col("fate") == fate).alias(f"transactions_{fate}") for fate in fates)
    )


def rare_events(tables: Tables) -> DataFrame:
    return tables.events.where(f.col("event").isin(*RARE)).select("run", "t", "fields")


# --- pure: from what was collected to what is written ----------------------------------------------


def coverage(
    events: Iterable[Mapping[str, Any]], value: Mapping[str, float], notes: Notes, zero_ns: int
) -> dict[str, Any]:
    """The `coverage` of reconciled.json. `events` are rows of `rare_events`, in any order."""
    lines = sorted((json.loads(e["fields"]) for e in events), key=lambda line: int(line["t"]))
    drains = [e for e in lines if e["event"] == "drain"]
    reads = {"read_uncommitted": False, "read_committed": False}
    reads |= {str(e.get("isolation")): bool(e.get("complete")) for e in lines if e["event"] == "read"}

    def number(name: str) -> int:
        return int(value.get(name, 0))

    return {
        "windows": windows([e for e in lines if e["event"] == "window"], zero_ns),
        "progress_before": number("progress_before"),
        "progress_after": number("progress_after"),
        "drained": bool(drains) and all(bool(d.get("complete")) for d in drains),
        "drain_detail": "; ".join(str(d["detail"]) for d in drains if d.get("detail")),
        "reads": reads,
        "gaps": list(notes.gaps),
        "notes": list(notes.torn),
        "errors": [f"{e.get('where', e.get('writer'))}: {e.get('text')}" for e in lines if e["event"] == "error"],
        "transactions": {fate: number(f"transactions_{fate}") for fate in (COMMITTED, ABORTED, UNKNOWN)},
        "rebalances": number("rebalances"),
        "commits": number("commits"),
        "sessions": number("sessions"),
        "readers": number("readers"),
        # 1 only when every session kept one request in flight; null when it was left to the client.
        "in_flight": number("in_flight_max") if number("in_flight_min") else None,
    }


def windows(events: Iterable[Mapping[str, Any]], zero_ns: int) -> list[dict[str, Any]]:
    """One entry a fault window, from the events of its life."""
    lives: dict[Any, dict[str, Any]] = {}
    for event in events:
        life = lives.setdefault(event["window"], _new_window(event["window"]))
        life |= {name: event[name] for name in ("fault", "target", "nodes") if event.get(name) is not None}
        step = event.get("step")
        if step in ("open", "bite", "heal", "healed"):
            life[f"{step}_s"] = seconds(event["t"], zero_ns)
        if step == "bite":
            life |= {"bit": bool(event.get("bit")), "proof": event.get("proof", ""), "measured": event.get("measured", {})}
        elif step == "healed":
            life |= {"healed": bool(event.get("healed")), "heal_proof": event.get("proof", "")}
        elif step == "error":
            life["error"] = str(event.get("text", "error"))
    return [lives[window] for window in sorted(lives, key=str)]


def _new_window(window: Any) -> dict[str, Any]:
    return {
        "window": window, "fault": None, "target": None, "nodes": [], "bit": False, "proof": "", "measured": {},
        "healed": False, "heal_proof": "", "open_s": None, "bite_s": None, "heal_s": None, "healed_s": None,
        "error": None,
    }  # fmt: skip


def seconds(t: int | None, zero_ns: int) -> float | None:
    return None if t is None else round((t - zero_ns) / 1e9, 6)
