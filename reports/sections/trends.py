"""Trends: this night beside the sessions before it, and what changed beyond noise; each point opens a run."""

from __future__ import annotations

from typing import Any

from harness.trends.differences import SessionPoint
from reports import words
from reports.many.trend_drawing import HIGH, WIDE, line
from reports.model import Report

PLACE = 14  # sections are in the order of their places


def section(report: Report) -> dict[str, Any]:
    """Return the lines; nothing without a store of sessions."""
    found = report.differences
    if found is None or not found.baseline_sessions:
        return {"links": [], "shown": False}
    sessions = found.series
    links = [_link(report, point) for point in sessions]

    def drawn(title: str, values: list[float | None], shown: Any) -> Any:
        labels = [words.plural(point.runs, "run") for point in sessions]
        dates = [point.date for point in sessions]
        return line(title, list(zip(dates, values, links, labels, strict=True)), shown)

    lines = [
        drawn("Runs that broke a promise", [_share(p.violated, p.runs) for p in sessions], _percent),
        drawn("Runs that proved nothing", [_share(p.inconclusive, p.runs) for p in sessions], _percent),
        drawn("Time to recover, median", [p.recovery_s for p in sessions], words.seconds),
        drawn("Acknowledged per second, median", [p.throughput_per_s for p in sessions], words.short_number),
    ]
    return {
        "links": [("trends", "Trends")],
        "shown": True,
        "lines": [each for each in lines if each is not None],
        "before": len(found.baseline_sessions),
        "changes": found.changes,
        "unchanged": found.unchanged,
        "wide": WIDE,
        "high": HIGH,
    }


def _link(report: Report, point: SessionPoint) -> str:
    """Return where a point leads: to a run on this page, or else the folder of a run of an earlier session, relative to the runs."""
    for place, run in enumerate(report.runs, 1):
        if f"{run.path.parent.name}/{run.path.name}" == point.run_dir:
            return f"#run-{place}"
    return point.run_dir


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _percent(share: float) -> str:
    return f"{share:.0%}" if share in (0.0, 1.0) or share >= 0.1 else f"{share:.1%}"
