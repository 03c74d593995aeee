"""Latency, throughput, timeline and recovery, from the times that screening counted. Pure.

Latencies are counted in bins two percent wide, so percentiles are right to one percent; acks are counted in slots of
10 ms, so the time without an ack of a partition is right to 20 ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.reconcile.arrays import Ints
from harness.reconcile.screen.screen import Screened
from harness.reconcile.screen.spaces import Space, Summary
from harness.reconcile.screen.summaries import (
    ATTEMPTED_BIN,
    BIN,
    DELIVERED_BIN,
    SLOT_NS,
    Count,
)

LONG_SILENCE_S, SLOT_S = 0.25, SLOT_NS / 1e9


def percentile(bins: Ints, counts: Ints, share: float) -> float | None:
    """Return the latency in ms that `share` of the acks did not exceed; None without acks."""
    if not len(bins):
        return None
    order = np.argsort(bins)
    reached = np.searchsorted(np.cumsum(counts[order]), share * counts.sum())
    return round(float(np.exp((bins[order][min(int(reached), len(order) - 1)] + 0.5) * BIN)), 3)


def latency_and_throughput(screened: Screened) -> dict[str, Any]:
    """Return `latency_ms` and `throughput_per_s` of the run."""
    acks = _acks(screened.space(Space.BUCKET))
    began, ended = screened.highest(Count.FIRST_ATTEMPT), screened.highest(Count.LAST_ACK)
    span_s = 0.0 if began is None or ended is None else (ended + began) / 1e9
    return {
        "latency_ms": {
            "p50": percentile(acks["bin"], acks["rows"], 0.5),
            "p99": percentile(acks["bin"], acks["rows"], 0.99),
            "max": round(int(acks["longest_ns"].max()) / 1e6, 3) if len(acks["run"]) else None,
        },
        "throughput_per_s": round(int(acks["rows"].sum()) / span_s, 1) if span_s > 0 else 0.0,
    }


def timeline(screened: Screened, bucket_ns: int) -> dict[str, Any]:
    """Return the `timeline` of reconciled.json, without holes: a bucket in which nothing happened has zeros."""
    s, bucket_s = screened.space(Space.BUCKET), bucket_ns / 1e9
    acks = _acks(s)
    span = range(int(s["bucket"].min()), int(s["bucket"].max()) + 1) if len(s["bucket"]) else range(0)
    order = np.argsort(acks["bucket"], kind="stable")
    bucket, bins, counts = (acks[name][order] for name in ("bucket", "bin", "rows"))
    edges = np.searchsorted(bucket, np.arange(span.start, span.stop + 1))

    def counted(chosen: Any) -> list[int]:
        totals = np.zeros(len(span), dtype=np.int64)
        np.add.at(totals, s["bucket"][chosen] - span.start, s["rows"][chosen])
        return [int(n) for n in totals]

    def share(part: float) -> list[float | None]:
        return [
            percentile(bins[first:last], counts[first:last], part)
            for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ]

    return {
        "bucket_s": bucket_s,
        "t_s": [round(b * bucket_s, 3) for b in span],
        "attempted": counted(s["bin"] == ATTEMPTED_BIN),
        "acked": counted((s["bin"] != ATTEMPTED_BIN) & (s["bin"] != DELIVERED_BIN)),
        "delivered": counted(s["bin"] == DELIVERED_BIN),
        "latency_p50_ms": share(0.5),
        "latency_p99_ms": share(0.99),
    }


def unavailable_s_max(screened: Screened) -> float:
    """Return the longest time between two acks of one partition."""
    return round(max((float(gap) for gaps in silences(screened).values() for _, gap in gaps), default=0.0), 3)


def silences(screened: Screened) -> dict[int, list[tuple[float, float]]]:
    """Return, for each place, the times without an ack between its first and its last ack: begin and length in s."""
    s = screened.space(Space.ACK_SLOTS)
    found = {}
    for place in np.unique(s["place"]).tolist():
        mine = s["place"] == place
        bits = (s["slots"][mine][:, None].view(np.uint64) >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        slots = np.sort((s["slot_block"][mine][:, None] * 64 + np.arange(64))[bits == 1])
        gaps = np.diff(slots)
        silent = gaps > 1  # acks in neighbouring slots leave no gap
        found[place] = list(
            zip((slots[:-1][silent] * SLOT_S).tolist(), (gaps[silent] * SLOT_S).tolist(), strict=True)
        )
    return found


def recovery(screened: Screened, windows: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """Return, for each fault window, the time in s from its opening until every partition silent in it acks again.

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
    acked = (s["bin"] != ATTEMPTED_BIN) & (s["bin"] != DELIVERED_BIN)
    return {name: values[acked] for name, values in s.items()}
