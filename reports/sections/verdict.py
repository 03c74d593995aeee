"""The verdict: one sentence, the runs that are not as promised, and the numbers that show how much was tested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports import words
from reports.headline import BAD_NEWS, headline_of
from reports.many.night import Night
from reports.model import Report, RunReport, Standing

PLACE = 10  # sections are in the order of their places


def section(report: Report) -> dict[str, Any]:
    return {
        "headline": headline_of(report),
        "besides": report.course.lines(len(report.runs)) if report.course is not None else [],
        "amiss": _amiss(report),
        "numbers": _numbers(report),
    }


def _amiss(report: Report) -> list[dict[str, Any]]:
    """Return the runs that are not as promised, worst first; runs of one scenario with the same standing share a line.

    The section about a night has those with findings and without proof.
    """
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    elsewhere = (Standing.BROKEN, Standing.UNPROVEN) if report.night is not None else ()
    for standing in (each for each in BAD_NEWS if each not in elsewhere):
        for place, run in enumerate(report.runs, 1):
            if run.standing is standing:
                group = groups.setdefault(
                    (run.scenario, standing), {"run": run, "place": place, "why": _why(run), "runs": 0}
                )
                group["runs"] += 1
    return list(groups.values())


def _why(run: RunReport) -> str:
    if run.verdict == run.expected and run.requirement.reasons:
        return "; ".join(run.requirement.reasons)
    if run.standing is Standing.BROKEN:
        found = ", ".join(f"{words.number(v.count)} {words.words(v.anomaly)}" for v in run.violations)
        return found or "violated"
    if run.standing is Standing.MISSED:
        return f"has to be {run.expected} and was {run.verdict}"
    return run.inconclusive[0] if run.inconclusive else "no reason was written"


def _numbers(report: Report) -> list[tuple[str, str, str]]:
    """Return (number, label, remark) that show how much was tested."""
    runs = report.runs
    windows = [w for r in runs for w in r.windows]
    longest = max((r for r in runs if r.unavailable_s_max is not None), default=None,
                  key=lambda r: r.unavailable_s_max or 0.0)  # fmt: skip
    rows = [
        (words.number(_sum(runs, "attempted")), "messages attempted",
         f"{words.number(_sum(runs, 'acked'))} acknowledged"),
        (words.short_number(sum(sum(r.compared.values()) for r in runs)), "comparisons",
         "by all finders together"),
    ]  # fmt: skip
    if windows:
        bitten = sum(w.bit for w in windows)
        rows.append(
            (f"{bitten} of {len(windows)}", "fault windows took effect", "each with a measured proof")
        )
    if longest is not None:
        rows.append((words.seconds(longest.unavailable_s_max), "longest unavailability", longest.scenario))
    if report.night is not None:
        rows += _numbers_of_night(report.night, len(runs))
    elif report.seconds is not None:
        rows.append((words.seconds(report.seconds), "for everything", words.plural(len(runs), "run")))
    return rows


def _numbers_of_night(night: Night, runs: int) -> list[tuple[str, str, str]]:
    return [
        (
            words.seconds(night.used_s),
            f"of {words.seconds(night.minutes * 60)} used",
            f"{runs} of {words.plural(night.planned, 'scenario')} run",
        ),
        ("found" if night.canary_found else "not found", "canary", "an unsafe scenario among the others"),
    ]


def _sum(runs: Sequence[RunReport], name: str) -> int:
    return sum(r.count(name) or 0 for r in runs)
