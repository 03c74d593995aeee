"""Findings: an overview over all runs, and for each run the worst few with their evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reports import words
from reports.model import Finding, Report, RunReport

PLACE = 50  # sections are in the order of their places


@dataclass(frozen=True)
class Group:
    """The findings of one anomaly in one run; `count` is of all, `worst` are the ones shown in full."""

    anomaly: str
    meaning: str
    count: int
    forbidden: bool
    worst: tuple[Finding, ...]


def section(report: Report) -> dict[str, Any]:
    """Return one row for each anomaly that was looked for; anomalies that were found come first."""
    looked_for = dict.fromkeys(a for run in report.runs for a in (*run.compared, *run.crashed))
    rows: list[dict[str, Any]] = []
    for anomaly in looked_for:
        found = [(p, r, r.count(anomaly) or 0) for p, r in enumerate(report.runs, 1) if r.count(anomaly)]
        rows.append(
            {
                "anomaly": anomaly,
                "meaning": words.MEANINGS.get(anomaly, ""),
                "compared": sum(r.compared.get(anomaly, 0) for r in report.runs),
                "looked": sum(anomaly in r.compared for r in report.runs),
                "forbidden": sum(n for _, r, n in found if r.forbids(anomaly) and not r.control),
                "planted": sum(n for _, r, n in found if r.forbids(anomaly) and r.control),
                "allowed": sum(n for _, r, n in found if not r.forbids(anomaly)),
                "crashed": sum(anomaly in r.crashed for r in report.runs),
            }
        )
    rows.sort(key=lambda row: (-row["forbidden"], -row["planted"], -row["allowed"]))
    return {"links": [("findings", "Findings")], "rows": rows}


def of_run(run: RunReport) -> list[Group]:
    """Return the findings of a run by anomaly, forbidden ones first; without a finding in full only the count is shown."""
    judged = [r.anomaly for r in (*run.violations, *run.counted) if r.count]
    kinds = dict.fromkeys([*judged, *(f.anomaly for f in run.findings)])
    groups = []
    for kind in kinds:
        worst = tuple(f for f in run.findings if f.anomaly == kind)
        count = max(run.count(kind) or 0, len(worst))
        groups.append(Group(kind, words.MEANINGS.get(kind, ""), count, run.forbids(kind), worst))
    return sorted(groups, key=lambda g: not g.forbidden)
