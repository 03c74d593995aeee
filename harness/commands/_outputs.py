"""Results beside the report: stdout, --junit FILE, and in GitHub Actions a summary of the step and annotations."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.runtime import github
from harness.runtime.disk_space import reason_of

if TYPE_CHECKING:
    from reports.ci.junit import Case
    from reports.course import Course
    from reports.model import RunReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--junit",
        metavar="FILE",
        type=Path,
        help="write a JUnit file with a test case per run, e.g. runs/junit.xml",
    )


def check(args: argparse.Namespace) -> None:
    """Raise UsageError before anything starts if the JUnit file cannot be written."""
    file = getattr(args, "junit", None)  # not every command has it
    if file is None:
        return
    with checked("--junit", file, "file"):
        if file.is_dir():
            raise IsADirectoryError("it is a folder")
        try_writing(file.parent)


@contextmanager
def checked(option: str, given: Path, kind: str) -> Iterator[None]:
    """Turn an error about the place that an option gives into a UsageError. `kind`: what to choose instead, file or folder."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{option} {given}: cannot be written: {reason_of(error)}; choose another {kind}"
        ) from error


def try_writing(folder: Path) -> None:
    """Make the folder and a file in it that has no name; raise an OSError or ValueError if that is not possible."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def print_result(text: str, *, interrupted: bool) -> None:
    """Print to stdout. After a SIGHUP the terminal is closed, but the report is written."""
    with suppress(*([OSError] if interrupted else [])):
        print(text, flush=True)


def publish_for_ci(
    args: argparse.Namespace,
    title: str,
    started: str,
    runs: Sequence[RunReport],
    course: Course,
    cases: Sequence[Case] = (),
    more: Sequence[str] = (),
) -> None:
    """Write what was asked for and what this CI system shows. `cases`, `more`: besides the runs; `started`: date and time.

    Annotations go to stderr, where GitHub reads them as well: stdout has the result of --json.
    """
    from reports.ci import junit, step_summary

    if args.junit is not None:
        found = [*junit.cases(runs, course), *cases]
        junit.write(args.junit, junit.document(title, started[:19].replace(" ", "T"), found))
    if not github.in_actions():
        return
    with suppress(OSError):  # a runner's file, not ours
        github.add_to_summary(step_summary.markdown(title, runs, course, more))
    with suppress(OSError):
        for line in step_summary.finding_annotations(runs):
            print(line, file=sys.stderr)
