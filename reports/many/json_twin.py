"""The parts of report.json about many runs: the night, its findings and coverage, the differences, a comparison."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from reports.many.compared import Kind, compared
from reports.many.comparison import Comparison
from reports.many.coverage_table import MODE, TARGET, CoverageTable, coverage_table
from reports.many.finding_groups import GroupOfFindings, groups_of
from reports.model import Report


def as_data(report: Report) -> dict[str, Any]:
    """Return the keys that only a report of a night, or a comparison, has."""
    found: dict[str, Any] = {}
    if (night := report.night) is not None:
        found["night"] = {
            **night.as_data(),
            "findings": [_group(each) for each in groups_of(report)],
            "coverage": {
                name: _table(coverage_table(report.runs, name, night.possible, night.covered))
                for name in (MODE, TARGET)
            },
        }
    if report.differences is not None:
        found["differences"] = report.differences.as_data()
    if report.comparison is not None:
        found["comparison"] = _comparison(report, report.comparison)
    return found


def _group(each: GroupOfFindings) -> dict[str, Any]:
    return {
        **asdict(each.group),
        "state": each.state or None,
        "findings": each.count,
        "rate": each.rate.as_data(),
        "run_dirs": [str(run.path) for _, run, _ in each.runs],
        "replayed": each.replayed.as_data() if each.replayed else None,
        "test": each.minimised.test if each.minimised and each.minimised.shows else None,
    }


def _table(table: CoverageTable) -> list[dict[str, Any]]:
    """Return the cells that can be, or are, exercised."""
    return [
        {
            "fault": cell.fault,
            "value": cell.value,
            "exercised": cell.exercised,
            "bit": cell.bit,
            "before": cell.before,
            "kind": cell.kind,
        }
        for cell in table.cells
        if cell.kind != "never"
    ]


def _comparison(report: Report, asked: Comparison) -> dict[str, Any]:
    found = compared(*asked.sides(report.runs))
    return {
        "sets": [asked.first, asked.second],
        "split": asked.split,
        "comparisons": found.comparisons,
        "kinds": [_kind(each) for each in (found.total, *found.modes, *found.kinds)],
        "anomalies": [asdict(each) for each in found.anomalies],
        "only": [list(names) for names in found.only],
    }


def _kind(kind: Kind) -> dict[str, Any]:
    return {**asdict(kind), "runs": list(kind.runs), "measures": [asdict(each) for each in kind.measures]}
