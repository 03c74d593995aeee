"""Reports for GitHub Actions: an annotation for each failed test, and a table in the summary of the step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from harness.pytest_plugin.evidence import EVIDENCE
from harness.runtime import github

_COLUMNS = ("verdict", "acked", "delivered", "lost", "duplicated", "reordered")


def write(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Yield the annotations, as lines for stdout, and append the table to the step summary if there is one.

    Does nothing outside GitHub Actions, or without a test of onceproof.
    """
    # A file that could not be collected has a report without keywords.
    ours = [report for report in reports if "onceproof" in getattr(report, "keywords", ())]
    if not ours or not github.in_actions():
        return
    yield from (annotation(report) for report in ours if report.failed)
    github.add_to_summary(summary(ours))


def annotation(report: pytest.TestReport) -> str:
    """The workflow command that shows a failure beside the line of the test."""
    path, line, name = report.location
    evidence = [text for title, text in report.sections if title == EVIDENCE]
    text = evidence[0] if evidence else report.longreprtext
    return github.annotation(text, file=path, line=(line or 0) + 1, title=f"onceproof: {name}")


def summary(reports: Iterable[pytest.TestReport]) -> str:
    """The table of the tests as Markdown; a test that ran several scenarios has the numbers of the last one."""
    rows = []
    for report in reports:
        numbers = dict(report.user_properties)
        rows.append([report.nodeid, report.outcome, *(numbers.get(name, "") for name in _COLUMNS)])
    lines = github.table(["test", "outcome", *_COLUMNS], rows)
    return "\n".join(["", "### onceproof", "", *lines]) + "\n"
