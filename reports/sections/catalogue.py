"""Hazards: each with what its unsafe run had to show and showed, the verdict of its safe way, and the cure."""

from __future__ import annotations

from typing import Any

from reports.hazard_runs import HazardRuns, found, hazard_runs, required
from reports.model import Report, RunReport

PLACE = 15  # sections are in the order of their places


def section(report: Report) -> dict[str, Any]:
    rows = hazard_runs(report.runs)
    places = {run.path: place for place, run in enumerate(report.runs, 1)}
    unsafe = [row for row in rows if not row.is_false_alarm]
    return {
        "links": [("catalogue", "Hazards")] if rows else [],
        "rows": [_row(row, places) for row in sorted(rows, key=lambda row: row.about["class"])],
        "caught": sum(row.caught for row in unsafe),
        "unsafe": len(unsafe),
        "held": sum(row.held for row in rows),
    }


def _row(row: HazardRuns, places: dict[Any, int]) -> dict[str, Any]:
    def linked(run: RunReport | None) -> tuple[int, RunReport] | None:
        return (places[run.path], run) if run is not None else None

    return {
        "name": row.name,
        "about": row.about,
        "standing": row.standing,
        "unsafe": linked(row.unsafe),
        "safe": linked(row.safe),
        "required": required(row.unsafe) if row.unsafe is not None else "",
        "found": found(row.unsafe) if row.unsafe is not None else "",
        "caught": row.caught,
        "false_alarm": row.is_false_alarm,
        "sentences": list(row.sentences()),
    }
