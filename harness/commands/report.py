"""build one HTML report, and JSON, from existing run folders"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import LedgerError, UsageError
from harness.ledger.rundir import find_runs
from harness.runtime.terminal import printable

if TYPE_CHECKING:
    from reports.model import RunReport

BAD_INPUT = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN",
                        help="a run folder, or a folder that is searched for run folders")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE",
                        help="HTML file to write, with a JSON file beside it (default: %(default)s)")  # fmt: skip
    parser.add_argument("--title", default="", help="title of the report, above the verdict")


def run(args: argparse.Namespace) -> int:
    """Write the report and print its path. Return 0 whatever the verdicts are, 2 if a run cannot be read."""
    from reports.build import build
    from reports.summary import closing, read

    if args.out.suffix == ".json" or args.out.is_dir():
        raise UsageError(f"--out {args.out}: give the name of an HTML file, e.g. report.html")
    folders = find_runs(args.runs)
    shown = read(folders)
    unreadable = [one for one in shown if one.error]
    if len(unreadable) == len(shown) == 1:
        raise LedgerError(f"{shown[0].path}: {shown[0].error}")
    for one in unreadable:
        print(f"onceproof: {printable(f'{one.path}: {one.error}')}", file=sys.stderr)
    seeds = {r.seed for r in shown}
    out = build(
        folders,
        args.out,
        title=args.title or f"report of {len(folders)} stored run{'s' if len(folders) != 1 else ''}",
        command=shlex.join(["./onceproof", "report", *map(str, args.runs), "--out", str(args.out)]),
        seed=seeds.pop() if len(seeds) == 1 else None,
        versions=_versions(shown),
        started=min((r.started for r in shown if isinstance(r.started, int | float)), default=None),
        seconds=None,
    )
    print(closing(shown))
    print(printable(out))
    return BAD_INPUT if unreadable else 0


def _versions(shown: Iterable[RunReport]) -> dict[str, Any]:
    """Return the versions of all runs by name; several, joined by commas, if runs differ."""
    seen: dict[str, dict[str, None]] = {}
    for report in shown:
        for name, version in report.versions.items():
            seen.setdefault(name, {})[str(version)] = None
    return {name: ", ".join(versions) for name, versions in seen.items()}
