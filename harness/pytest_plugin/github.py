"""Reports for GitHub Actions: an annotation for each failed test, and a table in the summary of the step."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from harness.pytest_plugin.evidence import EVIDENCE

_COLUMNS = ("verdict", "acked", "delivered", "lost", "duplicated", "reordered")
_LONGEST = 4000  # characters of an annotation


def write(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Yield the annotations, as lines for stdout, and append the table to the step summary if there is one.

    Does nothing outside GitHub Actions, or without a test of onceproof.
    """
    # A file that could not be collected has a report without keywords.
    ours = [report for report in reports if "onceproof" in getattr(report, "keywords", ())]
    if not ours or not os.environ.get("GITHUB_ACTIONS"):
        return
    yield from (annotation(report) for report in ours if report.failed)
    if place := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(summary(ours))


def annotation(report: pytest.TestReport) -> str:
    """The workflow command that shows a failure beside the line of the test."""
    path, line, name = report.location
    evidence = [text for title, text in report.sections if title == EVIDENCE]
    text = (evidence[0] if evidence else report.longreprtext)[:_LONGEST]
    place = f"file={_property(path)},line={(line or 0) + 1},title={_property(f'onceproof: {name}')}"
    return f"::error {place}::{_data(text)}"


def summary(reports: Iterable[pytest.TestReport]) -> str:
    """The table of the tests as Markdown; a test that ran several scenarios has the numbers of the last one."""
    lines = ["", "### onceproof", "", f"| test | outcome | {' | '.join(_COLUMNS)} |"]
    lines.append("|---" * (2 + len(_COLUMNS)) + "|")
    for report in reports:
        numbers = {str(name): str(value) for name, value in report.user_properties}
        cells = [report.nodeid, report.outcome, *(numbers.get(name, "") for name in _COLUMNS)]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
