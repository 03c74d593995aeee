"""compare the newest night, or session, with those before it: new, known and gone findings, and what changed beyond noise

It reads the store that prove, matrix, catalogue, nightly and pytest write. The exit code is 0 whatever it finds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.runtime import exits
from harness.runtime.terminal import printable

if TYPE_CHECKING:
    from harness.trends.differences import Differences, GroupHistory

_MOST_RUNS = 3  # run folders that are printed for a finding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--against",
        metavar="NIGHT|VERSION",
        help="compare with this night (its date or id), or with runs of this version of Kafka or of the client, e.g. "
        "4.2.0 (default: the sessions of the last days)",
    )
    parser.add_argument(
        "--days", metavar="N", type=float, default=14.0, help="how many days before it (default: 14)"
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--runs",
        metavar="FOLDER",
        type=Path,
        default=Path("runs"),
        help="folder of the run folders; its store is in .trends (default: runs)",
    )
    place.add_argument(
        "--store", metavar="FOLDER", type=Path, help="the store, if it is in no folder of runs"
    )
    parser.add_argument("--json", action="store_true", help="print the comparison as one JSON object")


def run(args: argparse.Namespace) -> int:
    from harness.trends.differences import differences
    from harness.trends.store import FOLDER, read_store

    if not args.days > 0:
        raise UsageError(f"--days {args.days:g}: give a number greater than 0")
    stored = read_store(args.store or args.runs / FOLDER)
    for line in stored.unreadable:
        print(f"onceproof: left out: {printable(line)}", file=sys.stderr)
    found = differences(stored.rows, against=args.against, days=args.days)
    if args.json:
        print(json.dumps(found.as_data()))
    else:
        print(
            "\n".join(printable(line) for line in lines(found, args.runs if args.store is None else Path()))
        )
    return exits.AS_PROMISED


def lines(found: Differences, runs: Path) -> list[str]:
    """Return the comparison as lines; one line if nothing is new, gone or changed."""
    from harness.trends.differences import GroupState

    if not found.baseline_sessions:
        first = f"{_session(found)}: no session before it to compare with"
        return [first, *_groups(found, GroupState.NEW, runs)]
    news = [*_groups(found, GroupState.NEW, runs), *_groups(found, GroupState.GONE, runs), *_changes(found)]
    if not news:
        return [f"Nothing new tonight: {_session(found)}, {_rest(found)}"]
    return [
        f"{_session(found)}, compared with {_baseline(found)}",
        *news,
        *_groups(found, GroupState.KNOWN, runs),
        _rest(found),
    ]


def _groups(found: Differences, state: str, runs: Path) -> Iterator[str]:
    for each in found.groups:
        if each.state == state:
            yield f"{state:7}  {each.group}: {_rates(each)}; first seen {each.first_seen}"
            yield from (f"         {runs / run}" for run in each.run_dirs[:_MOST_RUNS])
            if len(each.run_dirs) > _MOST_RUNS:
                yield f"         and {len(each.run_dirs) - _MOST_RUNS} more runs"


def _changes(found: Differences) -> Iterator[str]:
    for each in found.changes:
        yield f"changed  {each.text} (p {each.p:.2g})"


def _rates(each: GroupHistory) -> str:
    return f"{each.tonight}, before {each.before}"


def _session(found: Differences) -> str:
    return f"{found.session} ({found.date}, {_count(found.runs, 'run')})"


def _baseline(found: Differences) -> str:
    first = next((each.date for each in found.series), "")
    return f"{_count(len(found.baseline_sessions), 'session')} since {first}"


def _rest(found: Differences) -> str:
    """Return what is only counted."""
    from harness.trends.differences import GroupState

    known, not_asked = (len(found.in_state(state)) for state in (GroupState.KNOWN, GroupState.NOT_ASKED))
    parts = [
        f"{_count(known, 'known finding')}, {not_asked} earlier not asked for",
        f"{_count(found.unchanged, 'comparison')} within noise",
        f"against {_baseline(found)}",
    ]
    if found.other_machines:
        parts.append(f"times of {_count(found.other_machines, 'run')} on other machines not compared")
    return "; ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
