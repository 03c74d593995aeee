"""The timeline of a run as charts need it: a regular grid of rates, thin enough for a page with many runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

from reports.files import decimal, items

MOST_BUCKETS = 1200  # a chart is about as many pixels wide; a longer run is thinned to this
Rates = tuple[float, ...]
Latencies = tuple[float | None, ...]


@dataclass(frozen=True)
class Timeline:
    """Rates per second and latencies on a grid without holes; `merged` says how many buckets became one."""

    start_s: float = 0.0
    step_s: float = 0.25
    merged: int = 1
    attempted: Rates = ()
    acked: Rates = ()
    delivered: Rates = ()
    latency_p50_ms: Latencies = ()
    latency_p99_ms: Latencies = ()

    def __len__(self) -> int:
        return len(self.acked)

    @property
    def end_s(self) -> float:
        return self.start_s + len(self) * self.step_s

    @classmethod
    def read(cls, written: Mapping[str, Any], most: int = MOST_BUCKETS) -> Timeline:
        """Read `timeline` of reconciled.json. A missing bucket had no traffic: its rates are 0.

        Otherwise the chart would draw a line straight across an outage.
        """
        step_s = decimal(written.get("bucket_s")) or 0.25
        times = [t for t in map(decimal, items(written, "t_s")) if t is not None]
        if not times:
            return cls(step_s=step_s)
        start_s = min(times)
        places = [round((t - start_s) / step_s) for t in times]
        size = max(places) + 1
        merged = ceil(size / most)

        def counts(name: str) -> Rates:
            grid = [0.0] * size
            for place, value in zip(places, items(written, name), strict=False):
                grid[place] = decimal(value) or 0.0
            return tuple(round(sum(part) / (len(part) * step_s), 1) for part in _parts(grid, merged))

        def latencies(name: str, worst: bool) -> Latencies:
            grid: list[float | None] = [None] * size
            for place, value in zip(places, items(written, name), strict=False):
                grid[place] = decimal(value)
            known = ([v for v in part if v is not None] for part in _parts(grid, merged))
            # Quantiles cannot be merged exactly: the highest p99 hides no peak, the median p50 invents none.
            return tuple(round(max(k) if worst else median(k), 2) if k else None for k in known)

        return cls(
            start_s=round(start_s, 3),
            step_s=round(step_s * merged, 6),
            merged=merged,
            attempted=counts("attempted"),
            acked=counts("acked"),
            delivered=counts("delivered"),
            latency_p50_ms=latencies("latency_p50_ms", worst=False),
            latency_p99_ms=latencies("latency_p99_ms", worst=True),
        )

    def compact(self) -> dict[str, Any]:
        """Return the numbers for the script in the page, in few bytes."""
        return {
            "t0": self.start_s,
            "dt": self.step_s,
            "merged": self.merged,
            "attempted": [round(v) for v in self.attempted],
            "acked": [round(v) for v in self.acked],
            "delivered": [round(v) for v in self.delivered],
            "p50": list(self.latency_p50_ms),
            "p99": list(self.latency_p99_ms),
        }


def _parts(grid: Sequence[Any], merged: int) -> list[Sequence[Any]]:
    return [grid[i : i + merged] for i in range(0, len(grid), merged)]
