"""build one HTML report, and JSON, from existing run folders, of a night, or of two sets of runs"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import LedgerError, UsageError
from harness.ledger.rundir import RunDir, find_runs
from harness.runtime.terminal import printable

if TYPE_CHECKING:
    from reports.model import RunReport

BAD_INPUT = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs_shown", nargs="*", type=Path, metavar="RUN",
                        help="a run folder, or a folder that is searched for run folders")  # fmt: skip
    parser.add_argument("--night", metavar="DATE",
                        help="the runs of a night: its date (2026-11-19), its folder in .nights, or last")  # fmt: skip
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"),
                        help="two sets side by side; each is a folder as RUN, or a night as for --night")  # fmt: skip
    parser.add_argument("--runs", type=Path, default=Path("runs"),
                        help="folder of the runs and nights, for --night and --compare (default: runs)")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE",
                        help="HTML file to write, with a JSON file beside it (default: %(default)s)")  # fmt: skip
    parser.add_argument("--title", default="", help="title of the report, above the verdict")


def run(args: argparse.Namespace) -> int:
    """Write the report and print its path. Return 0 whatever the verdicts are, 2 if a run cannot be read."""
    from reports.build import build
    from reports.summary import closing, read

    if args.out.suffix == ".json" or args.out.is_dir():
        raise UsageError(f"--out {args.out}: give the name of an HTML file, e.g. report.html")
    folders, known = _asked(args)
    shown = read(folders)
    unreadable = [one for one in shown if one.error]
    if len(unreadable) == len(shown) == 1:
        raise LedgerError(f"{shown[0].path}: {shown[0].error}")
    for one in unreadable:
        print(f"onceproof: {printable(f'{one.path}: {one.error}')}", file=sys.stderr)
    seeds = {r.seed for r in shown}
    about = {
        "title": f"report of {len(folders)} stored run{'s' if len(folders) != 1 else ''}",
        "command": _command(args),
        "seed": seeds.pop() if len(seeds) == 1 else None,
        "started": min((r.started for r in shown if isinstance(r.started, int | float)), default=None),
        "seconds": None,
        **known,
        **({"title": args.title} if args.title else {}),
    }
    out = build(folders, args.out, versions=_versions(shown), **about)
    print(closing(shown))
    print(printable(out))
    return BAD_INPUT if unreadable else 0


def _asked(args: argparse.Namespace) -> tuple[Sequence[RunDir], dict[str, Any]]:
    """Return the runs, and what is known about them beside their folders."""
    given = [bool(args.runs_shown), args.night is not None, args.compare is not None]
    if sum(given) != 1:
        raise UsageError("report: give run folders, or --night DATE, or --compare A B")
    if args.night is not None:
        from harness.commands._night_report import stored_night

        return stored_night(args.runs, args.night)
    if args.compare is not None:
        return _compared(args.runs, *args.compare)
    return find_runs(args.runs_shown), {}


def _compared(runs: Path, first: str, second: str) -> tuple[Sequence[RunDir], dict[str, Any]]:
    from reports.many.comparison import Comparison

    sides = [_set(runs, each) for each in (first, second)]
    if both := [run.path for run in sides[0] if run in sides[1]]:
        raise UsageError(
            f"--compare {first} {second}: {both[0]} is in both sets; give sets without common runs"
        )
    title = f"comparison of {len(sides[0])} and {len(sides[1])} stored runs"
    return [*sides[0], *sides[1]], {"title": title, "comparison": Comparison(first, second, len(sides[0]))}


def _set(runs: Path, name: str) -> Sequence[RunDir]:
    """Return the runs of a folder, or if there is none of this name, of a night."""
    if Path(name).exists():
        return find_runs([Path(name)])
    from harness.commands._night_report import stored_night

    try:
        return stored_night(runs, name)[0]
    except UsageError as error:
        raise UsageError(f"--compare {name}: neither a folder nor a night: {error}") from error


def _command(args: argparse.Namespace) -> str:
    words = [*map(str, args.runs_shown)]
    if args.night is not None or args.compare is not None:
        words += ["--night", args.night] if args.night is not None else ["--compare", *args.compare]
        words += ["--runs", str(args.runs)]
    return shlex.join(["./onceproof", "report", *words, "--out", str(args.out)])


def _versions(shown: Iterable[RunReport]) -> dict[str, Any]:
    """Return the versions of all runs by name; several, joined by commas, if runs differ."""
    seen: dict[str, dict[str, None]] = {}
    for report in shown:
        for name, version in report.versions.items():
            seen.setdefault(name, {})[str(version)] = None
    return {name: ", ".join(versions) for name, versions in seen.items()}
