"""How fast, how late and how long not at all: aggregates over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from harness.contracts import Outcome
from harness.reconcile.tables import Tables

BUCKET_S = 0.25
_BUCKET_NS = int(BUCKET_S * 1e9)


def buckets(tables: Tables) -> DataFrame:
    """run, bucket, attempted, acked, delivered, p50_ms, p99_ms: latency of the acks that came in this bucket."""
    sent = tables.attempts.select("run", "t", f.lit(1).alias("attempted"))
    acked = _acked(tables).select("run", f.col("t_outcome").alias("t"), f.lit(1).alias("acked"), "latency_ms")
    given = tables.deliveries.select("run", "t", f.lit(1).alias("delivered"))
    together = sent.unionByName(acked, allowMissingColumns=True).unionByName(given, allowMissingColumns=True)
    zero = f.broadcast(tables.runs.select("run", "zero_ns"))
    bucket = f.floor((f.col("t") - f.col("zero_ns")) / _BUCKET_NS)
    return (
        together.join(zero, on="run", how="inner")
        .groupBy("run", bucket.alias("bucket"))
        .agg(
            *(f.count(name).alias(name) for name in ("attempted", "acked", "delivered")),
            f.percentile_approx("latency_ms", 0.5).alias("p50_ms"),
            f.percentile_approx("latency_ms", 0.99).alias("p99_ms"),
        )
    )


def totals(tables: Tables) -> DataFrame:
    """run, name, value: latency percentiles, throughput, and the longest time between two acks of a partition."""
    by_time = Window.partitionBy("run", "topic", "place").orderBy("t_outcome")
    gap_s = (f.col("t_outcome") - f.lag("t_outcome").over(by_time)) / 1e9
    place = f.coalesce("told_partition", "partition")
    produced_s = (f.max("t_outcome") - f.min("t")) / 1e9
    wide = (
        _acked(tables)
        .withColumn("place", place)
        .select("run", "t", "t_outcome", "latency_ms", gap_s.alias("gap_s"))
        .groupBy("run")
        .agg(
            f.max("gap_s").alias("unavailable_s_max"),
            f.percentile_approx("latency_ms", 0.5).alias("p50_ms"),
            f.percentile_approx("latency_ms", 0.99).alias("p99_ms"),
            f.max("latency_ms").alias("max_ms"),
            f.when(produced_s > 0, f.count(f.lit(1)) / produced_s).alias("throughput_per_s"),
        )
    )
    return wide.unpivot("run", None, "name", "value")


def _acked(tables: Tables) -> DataFrame:
    latency_ms = (f.col("t_outcome") - f.col("t")) / 1e6
    return tables.attempts.where(f.col("outcome") == int(Outcome.ACKED)).withColumn("latency_ms", latency_ms)


def timeline(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The `timeline` of reconciled.json, without holes: a bucket in which nothing happened has zeros."""
    at = {int(row["bucket"]): row for row in rows if row["bucket"] is not None}
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
