"""Two sets of runs side by side, with the differences beyond noise marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from harness.trends.changes import LEVEL
from harness.trends.row import NO_FAULT, faults_in
from reports import words
from reports.many.compared import LEAST, Kind, compared
from reports.many.finding_groups import client
from reports.model import Report, RunReport, Standing

PLACE = 11  # sections are in the order of their places
SETS = ("A", "B")


def section(report: Report) -> dict[str, Any]:
    """Return both sets and their comparison; nothing if the report is not one."""
    asked = report.comparison
    if asked is None:
        return {"links": [], "shown": False}
    sides = asked.sides(report.runs)
    found = compared(*sides)
    return {
        "links": [("comparison", "Comparison")],
        "shown": True,
        "sets": [
            _set(letter, name, runs)
            for letter, name, runs in zip(SETS, (asked.first, asked.second), sides, strict=True)
        ],
        "total": found.total,
        "modes": found.modes if len(found.modes) > 1 else (),
        "kinds": found.kinds,
        "anomalies": found.anomalies,
        "only": list(zip(SETS, found.only, strict=True)),
        "differences": found.differences,
        "comparisons": found.comparisons,
        "one_in": round(1 / LEVEL),
        "least": LEAST,
        "link": _link,
    }


def _set(letter: str, name: str, runs: Sequence[RunReport]) -> dict[str, Any]:
    controls = [run for run in runs if run.control]
    fine = sum(run.standing is Standing.AS_PROMISED for run in controls)
    return {
        "letter": letter,
        "name": name,
        "runs": words.plural(len(runs), "run"),
        "controls": f"{fine} of {words.plural(len(controls), 'control')} as required" if controls else "",
        "software": list(dict.fromkeys(run.software for run in runs if run.software)),
        "clients": list(dict.fromkeys(client(run) for run in runs)),
    }


def _link(kind: Kind, letter: str) -> str:
    """Return the fragment that shows the runs of one set of a kind."""
    asked = {"set": letter, "mode": kind.mode}
    if kind.faults:
        asked["faults"] = " ".join(sorted(faults_in(kind.faults) or {NO_FAULT}))
    return "#runs?" + urlencode({name: value for name, value in asked.items() if value})
