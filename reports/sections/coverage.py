"""Coverage of a night: modes and targets as rows, faults as columns, with the cells that stayed empty."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from reports import words
from reports.many.coverage_table import MODE, TARGET, CoverageCell, coverage_table
from reports.model import Report

PLACE = 13  # sections are in the order of their places


def section(report: Report) -> dict[str, Any]:
    """Return the tables by mode and by target; nothing if the report is not of a night."""
    night = report.night
    if night is None:
        return {"links": [], "modes": None}
    modes = coverage_table(report.runs, MODE, night.possible, night.covered)
    targets = coverage_table(report.runs, TARGET, night.possible, night.covered)
    never = [cell for cell in modes.gaps if not cell.before]
    return {
        "links": [("coverage", "Coverage")],
        "modes": modes,
        "targets": targets,
        "never": [_name(cell) for cell in never],
        "earlier": [_name(cell) for cell in modes.gaps if cell.before],
        "link": _link,
    }


def _name(cell: CoverageCell) -> str:
    return f"{words.words(cell.fault)} in {words.mode(cell.value)}"


def _link(cell: CoverageCell) -> str:
    """Return the fragment that shows the runs of a cell of the table by mode."""
    return "#runs?" + urlencode({"mode": cell.value, "faults": cell.fault})
