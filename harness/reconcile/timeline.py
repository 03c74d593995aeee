"""How fast, how late and how long not at all: what follows from the times that screening counted. Pure.

Latencies are counted in bins two percent wide, so percentiles are right to one percent; acks are counted in slots of
10 ms, so the time without an ack of a partition is right to 20 ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.reconcile.arrays import Ints
from harness.reconcile.screen.screen import Screened
from harness.reconcile.screen.summaries import (
    ATTEMPTED_BIN,
    BIN,
    DELIVERED_BIN,
    SLOT_NS,
    Count,
    Space,
    Summary,
)

LONG_SILENCE_S, SLOT_S = 0.25, SLOT_NS / 1e9


def percentile(bins: Ints, counts: Ints, share: float) -> float | None:
    """The latency in ms that `share` of the acks did not exceed; None without acks."""
    if not len(bins):
        return None
    order = np.argsort(bins)
    reached = np.searchsorted(np.cumsum(counts[order]), share * counts.sum())
    return round(float(np.exp((bins[order][min(int(reached), len(order) - 1)] + 0.5) * BIN)), 3)


def latency_and_throughput(screened: Screened) -> dict[str, Any]:
    """`latency_ms` and `throughput_per_s` of the run."""
    acks = _acks(screened.space(Space.BUCKET))
    began, ended = screened.highest(Count.FIRST_ATTEMPT), screened.highest(Count.LAST_ACK)
    span_s = 0.0 if began is None or ended is None else (ended + began) / 1e9
    return {
        "latency_ms": {
            "p50": percentile(acks["b"], acks["n0"], 0.5),
            "p99": percentile(acks["b"], acks["n0"], 0.99),
            "max": round(int(acks["x"].max()) / 1e6, 3) if len(acks["x"]) else None,
        },
        "throughput_per_s": round(int(acks["n0"].sum()) / span_s, 1) if span_s > 0 else 0.0,
    }


def timeline(screened: Screened, bucket_ns: int) -> dict[str, Any]:
    """The `timeline` of reconciled.json, without holes: a bucket in which nothing happened has zeros."""
    s, bucket_s = screened.space(Space.BUCKET), bucket_ns / 1e9
    acks = _acks(s)
    span = range(int(s["a"].min()), int(s["a"].max()) + 1) if len(s["a"]) else range(0)
    order = np.argsort(acks["a"], kind="stable")
    bucket, bins, counts = (acks[name][order] for name in ("a", "b", "n0"))
    edges = np.searchsorted(bucket, np.arange(span.start, span.stop + 1))

    def counted(chosen: Any) -> list[int]:
        totals = np.zeros(len(span), dtype=np.int64)
        np.add.at(totals, s["a"][chosen] - span.start, s["n0"][chosen])
        return [int(n) for n in totals]

    def share(part: float) -> list[float | None]:
        return [
            percentile(bins[first:last], counts[first:last], part)
            for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ]

    return {
        "bucket_s": bucket_s,
        "t_s": [round(b * bucket_s, 3) for b in span],
        "attempted": counted(s["b"] == ATTEMPTED_BIN),
        "acked": counted((s["b"] != ATTEMPTED_BIN) & (s["b"] != DELIVERED_BIN)),
        "delivered": counted(s["b"] == DELIVERED_BIN),
        "latency_p50_ms": share(0.5),
        "latency_p99_ms": share(0.99),
    }


def unavailable_s_max(screened: Screened) -> float:
    """The longest time between two acks of one partition."""
    return round(max((float(gap) for gaps in silences(screened).values() for _, gap in gaps), default=0.0), 3)


def silences(screened: Screened) -> dict[int, list[tuple[float, float]]]:
    """Of each place, the times without an ack between its first and its last one: when it began, how long, in s."""
    s = screened.space(Space.ACK_SLOTS)
    found = {}
    for place in np.unique(s["a"]).tolist():
        mine = s["a"] == place
        bits = (s["m0"][mine][:, None].view(np.uint64) >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        slots = np.sort((s["b"][mine][:, None] * 64 + np.arange(64))[bits == 1])
        gaps = np.diff(slots)
        silent = gaps > 1  # acks in neighbouring slots leave no gap
        found[place] = list(
            zip((slots[:-1][silent] * SLOT_S).tolist(), (gaps[silent] * SLOT_S).tolist(), strict=True)
        )
    return found


def recovery(screened: Screened, windows: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """Of each fault window: from its opening until every partition that fell silent in it acks again, in s.

    None when the window has no times; 0 when no partition was silent for longer than LONG_SILENCE_S.
    """
    gaps = [gap for of_place in silences(screened).values() for gap in of_place]
    recovered: list[float | None] = []
    for window in windows:
        opened, closed = window.get("open_s"), window.get("healed_s") or window.get("heal_s")
        if opened is None:
            recovered.append(None)
            continue
        until = [
            began + length
            for began, length in gaps
            if length > LONG_SILENCE_S and began + length > opened and (closed is None or began < closed)
        ]
        recovered.append(round(max(0.0, max(until, default=opened) - opened), 3))
    return recovered


def _acks(s: Summary) -> Summary:
    acked = (s["b"] != ATTEMPTED_BIN) & (s["b"] != DELIVERED_BIN)
    return {name: values[acked] for name, values in s.items()}
