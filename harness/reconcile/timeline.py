"""How fast, how late and how long not at all: one aggregate over time, with what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.contracts import Outcome
from harness.reconcile.tables import Tables

BUCKET_S = 0.25
_ACKED = int(Outcome.ACKED)

Row = Mapping[str, Any]


def moments(tables: Tables) -> DataFrame:
    """run, bucket, place, kind, attempted, acked, delivered, first, last, p50_ms, p99_ms, max_ms at three grains.

    kind 0: of a partition (`place`) in a bucket; 1: of a bucket; 3: of the whole run. `first` and `last` are the
    times of its first and last ack, the latencies those of the acks that came in it.
    """
    sent = tables.attempts.selectExpr("run", "t", "partition AS place", "1 AS attempted")
    acked = tables.attempts.where(f"outcome = {_ACKED}").selectExpr(
        "run", "t_outcome AS t", "coalesce(told_partition, partition) AS place", "1 AS acked", "t_outcome AS ack",
        "(t_outcome - t) / 1e6 AS latency_ms",
    )  # fmt: skip
    given = tables.deliveries.selectExpr("run", "t", "partition AS place", "1 AS delivered")
    together = sent.unionByName(acked, allowMissingColumns=True).unionByName(given, allowMissingColumns=True)
    bucket = f"CAST(floor((t - zero_ns) / {int(BUCKET_S * 1e9)}) AS int) AS bucket"
    timed = together.join(f.broadcast(tables.runs.select("run", "zero_ns")), on="run", how="inner")
    grains = [[f.col(c) for c in g] for g in (("run", "bucket", "place"), ("run", "bucket"), ("run",))]
    aggregates = [
        "CAST(grouping_id(run, bucket, place) AS int) AS kind",
        *(f"count({name}) AS {name}" for name in ("attempted", "acked", "delivered")),
        "min(ack) AS first", "max(ack) AS last", "min(t) AS began", "max(latency_ms) AS max_ms",
        "percentile_approx(latency_ms, 0.5) AS p50_ms", "percentile_approx(latency_ms, 0.99) AS p99_ms",
    ]  # fmt: skip
    return timed.selectExpr("*", bucket).groupingSets(grains, "run", "bucket", "place").agg(*map(f.expr, aggregates))


# --- pure: from what was collected to what is written ----------------------------------------------


def unavailable_s_max(rows: Iterable[Row]) -> float:
    """The longest time between two acks of one partition. Gaps within a bucket are too short to matter."""
    places: dict[Any, list[tuple[int, int]]] = {}
    for row in rows:
        if row["kind"] == 0 and row["first"] is not None:
            places.setdefault(row["place"], []).append((row["first"], row["last"]))
    gaps = [after[0] - before[1] for acks in places.values() for before, after in pairwise(sorted(acks))]
    return round(max(gaps, default=0) / 1e9, 3)


def totals(rows: Iterable[Row]) -> dict[str, Any]:
    """`latency_ms` and `throughput_per_s` of the run."""
    whole = next((row for row in rows if row["kind"] == 3 and row["acked"]), None)
    if whole is None:
        return {"latency_ms": {"p50": None, "p99": None, "max": None}, "throughput_per_s": 0.0}
    span_s = (whole["last"] - whole["began"]) / 1e9
    latency = {p: round(float(whole[f"{p}_ms"]), 3) for p in ("p50", "p99", "max")}
    return {"latency_ms": latency, "throughput_per_s": round(whole["acked"] / span_s, 1) if span_s > 0 else 0.0}


def timeline(rows: Iterable[Row]) -> dict[str, Any]:
    """The `timeline` of reconciled.json, without holes: a bucket in which nothing happened has zeros."""
    at = {int(row["bucket"]): row for row in rows if row["kind"] == 1}
    span = range(min(at), max(at) + 1) if at else range(0)

    def column(name: str) -> list[int]:
        return [int(at[b][name]) if b in at else 0 for b in span]

    def latency(name: str) -> list[float | None]:
        known = [at[b][name] if b in at else None for b in span]
        return [None if v is None else round(float(v), 3) for v in known]

    return {
        "bucket_s": BUCKET_S,
        "t_s": [round(b * BUCKET_S, 3) for b in span],
        **{name: column(name) for name in ("attempted", "acked", "delivered")},
        "latency_p50_ms": latency("p50_ms"),
        "latency_p99_ms": latency("p99_ms"),
    }
