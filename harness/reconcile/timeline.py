"""How fast, how late and how long not at all: one aggregate over time, and what follows from it.

Latencies are counted in bins two percent wide, so that the percentiles of any stretch of time come from adding
up counts; they are right to one percent.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.contracts import Outcome
from harness.reconcile.tables import Tables

BUCKET_S = 0.25
_BIN = math.log(1.02)
_ACKED = int(Outcome.ACKED)

Row = Mapping[str, Any]


def moments(tables: Tables) -> DataFrame:
    """run, bucket, place, bin, attempted, acked, delivered, began, first, last, max_ms.

    Of each bucket of time and partition (`place`), acks apart by the bin of their latency; `first` and `last` are the
    times of the first and the last ack, `began` that of the first attempt.
    """
    sent = tables.attempts.selectExpr("run", "t", "partition AS place", "1 AS attempted", "t AS sent")
    acked = tables.attempts.where(f"outcome = {_ACKED}").selectExpr(
        "run", "t_outcome AS t", "coalesce(told_partition, partition) AS place", "1 AS acked", "t_outcome AS ack",
        "(t_outcome - t) / 1e6 AS ms", f"CAST(floor(ln(greatest((t_outcome - t) / 1e6, 0.001)) / {_BIN}) AS int) AS bin",
    )  # fmt: skip
    given = tables.deliveries.selectExpr("run", "t", "partition AS place", "1 AS delivered")
    together = sent.unionByName(acked, allowMissingColumns=True).unionByName(given, allowMissingColumns=True)
    timed = together.join(f.broadcast(tables.runs.select("run", "zero_ns")), on="run", how="inner")
    bucket = f.expr(f"CAST(floor((t - zero_ns) / {int(BUCKET_S * 1e9)}) AS int) AS bucket")
    aggregates = [
        *(f"count({name}) AS {name}" for name in ("attempted", "acked", "delivered")),
        "min(sent) AS began", "min(ack) AS first", "max(ack) AS last", "max(ms) AS max_ms",
    ]  # fmt: skip
    return timed.groupBy("run", bucket, "place", "bin").agg(*map(f.expr, aggregates))


# --- pure: from what was collected to what is written ----------------------------------------------


def percentile(bins: Mapping[int, int], share: float) -> float | None:
    """The latency in ms that `share` of the acks did not exceed; None without acks."""
    total = sum(bins.values())
    seen = 0
    for number, count in sorted(bins.items()):
        seen += count
        if seen >= share * total:
            return round(math.exp((number + 0.5) * _BIN), 3)
    return None


def unavailable_s_max(rows: Iterable[Row]) -> float:
    """The longest time between two acks of one partition. Gaps within a bucket are too short to matter."""
    spans: dict[tuple[Any, int], tuple[int, int]] = {}
    for row in rows:
        if row["acked"]:
            at = row["place"], row["bucket"]
            first, last = spans.get(at, (row["first"], row["last"]))
            spans[at] = min(first, row["first"]), max(last, row["last"])
    places: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for (place, _), span in spans.items():
        places[place].append(span)
    gaps = [after[0] - before[1] for acks in places.values() for before, after in pairwise(sorted(acks))]
    return round(max(gaps, default=0) / 1e9, 3)


def totals(rows: Iterable[Row]) -> dict[str, Any]:
    """`latency_ms` and `throughput_per_s` of the run."""
    acks = [row for row in rows if row["acked"]]
    bins = Counter[int]()
    for row in acks:
        bins[row["bin"]] += row["acked"]
    began = min((row["began"] for row in rows if row["began"] is not None), default=0)
    span_s = (max((row["last"] for row in acks), default=began) - began) / 1e9
    longest = max((row["max_ms"] for row in acks), default=None)
    return {
        "latency_ms": {
            "p50": percentile(bins, 0.5),
            "p99": percentile(bins, 0.99),
            "max": None if longest is None else round(longest, 3),
        },
        "throughput_per_s": round(sum(bins.values()) / span_s, 1) if span_s > 0 else 0.0,
    }


def timeline(rows: Iterable[Row]) -> dict[str, Any]:
    """The `timeline` of reconciled.json, without holes: a bucket in which nothing happened has zeros."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    bins: dict[int, Counter[int]] = defaultdict(Counter)
    for row in rows:
        counts[row["bucket"]].update({name: row[name] for name in ("attempted", "acked", "delivered")})
        if row["acked"]:
            bins[row["bucket"]][row["bin"]] += row["acked"]
    span = range(min(counts), max(counts) + 1) if counts else range(0)
    return {
        "bucket_s": BUCKET_S,
        "t_s": [round(b * BUCKET_S, 3) for b in span],
        **{name: [counts[b][name] for b in span] for name in ("attempted", "acked", "delivered")},
        "latency_p50_ms": [percentile(bins[b], 0.5) for b in span],
        "latency_p99_ms": [percentile(bins[b], 0.99) for b in span],
    }
