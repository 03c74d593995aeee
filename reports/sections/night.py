"""The findings of a night by cause: new, known and gone, how often, and the commands that repeat them."""

from __future__ import annotations

from typing import Any

from harness.trends.differences import GroupState
from reports import words
from reports.many.finding_groups import groups_of
from reports.many.night import Night
from reports.model import Report, Standing

PLACE = 12  # sections are in the order of their places


def section(report: Report) -> dict[str, Any]:
    """Return the groups of findings; nothing if the report is not of a night."""
    night = report.night
    if night is None:
        return {"links": [], "shown": False}
    groups, found = groups_of(report), report.differences
    return {
        "links": [("night", "Night")],
        "shown": True,
        "groups": groups,
        "title": _title(report, [each.state for each in groups]),
        "has_history": found is not None,
        "gone": found.in_state(GroupState.GONE) if found else (),
        "not_asked": found.in_state(GroupState.NOT_ASKED) if found else (),
        "notes": _notes(report, night),
    }


def _title(report: Report, states: list[str]) -> str:
    if not states:
        return "No finding"
    shown = words.plural(len(states), "finding")
    if report.differences is None:
        return shown
    new, known = states.count(GroupState.NEW), states.count(GroupState.KNOWN)
    gone = len(report.differences.in_state(GroupState.GONE))
    return f"{shown}: {new} new, {known} known; {gone} gone"


def _notes(report: Report, night: Night) -> list[tuple[str, list[str]]]:
    """Return what did not go as planned, each kind with its members."""
    unproven = [run.scenario for run in report.runs if run.standing is Standing.UNPROVEN]
    skipped = report.course.skipped if report.course is not None else {}
    kinds = [
        ("Runs that proved nothing", unproven),
        ("Scenarios that were not reached in the time", list(night.not_reached)),
        ("Skipped scenarios", [f"{name}: {why}" for name, why in skipped.items()]),
        ("Runs that were stuck or broke", [f"{name}: {why}" for name, why in night.troubles.items()]),
        ("Runs that were cut and ran again", list(night.cut)),
        ("Left by clusters", list(night.leaks)),
    ]
    return [kind for kind in kinds if kind[1]]
