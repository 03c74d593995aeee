"""The result of many runs for a step of GitHub Actions: Markdown for its summary, and an annotation for each finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.runtime.github import annotation, cell, code, table
from reports.ci.junit import reasons_of
from reports.course import Course
from reports.headline import MARKS, headline
from reports.model import RunReport, Standing
from reports.summary import closing

_COLUMNS = ("acked", "delivered", "lost", "duplicated", "reordered")
_FAILED = (Standing.BROKEN, Standing.MISSED)
_MOST_ROWS = 500
_MOST_REASONS = 3


def markdown(title: str, runs: Sequence[RunReport], course: Course, more: Iterable[str] = ()) -> str:
    """Return the answer, the findings with the commands that repeat them, and a table of the runs.

    `more`: lines below the answer, as plain text.
    """
    lines = ["", f"### {cell(title)}: {cell(headline(runs).sentence)}", "", cell(closing(runs))]
    for line in (*more, *course.lines(len(runs))):
        lines += ["", cell(line)]
    if failed := [run for run in runs if run.standing in _FAILED]:
        lines += ["", "#### Findings", "", *(line for run in failed for line in _finding(run))]
    lines += ["", "#### Runs", "", *table(["", "scenario", "judged as", "verdict", *_COLUMNS], _rows(runs))]
    if len(runs) > _MOST_ROWS:
        lines += ["", f"and {len(runs) - _MOST_ROWS} more"]
    return "\n".join(lines) + "\n"


def finding_annotations(runs: Iterable[RunReport]) -> Iterator[str]:
    """Yield a workflow command for each run that violates a promise or does not show what was planted."""
    for run in runs:
        if run.standing in _FAILED:
            text = "\n".join([*reasons_of(run), f"repeat: {run.command}"])
            yield annotation(text, title=f"onceproof: {run.scenario}")


def _finding(run: RunReport) -> Iterator[str]:
    reasons = "; ".join(reasons_of(run)[:_MOST_REASONS])
    yield f"- **{cell(run.scenario)}**: {cell(run.standing)}: {cell(reasons)}"
    if run.command:
        yield f"  - repeat: {code(run.command)}"
    yield f"  - run folder: {code(run.path)}"


def _rows(runs: Sequence[RunReport]) -> Iterator[list[object]]:
    for run in runs[:_MOST_ROWS]:
        numbers = (run.count(name) for name in _COLUMNS)
        shown = ["" if number is None else number for number in numbers]
        yield [MARKS[run.standing], run.scenario, run.judged_as, run.verdict, *shown]
