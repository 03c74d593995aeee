"""run the delivery modes under faults on a real cluster and report which promises held"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fnmatch import fnmatch
from functools import partial
from typing import TYPE_CHECKING

from harness.cluster_options import Choice, add_options
from harness.commands import _run_and_report
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.scenario import Scenario


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run only three modes, each with a killed leader; takes less than 100 s",
    )
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="run only scenarios whose name matches, e.g. 'exactly_once-*'; may be repeated")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print the names of the scenarios and exit")
    _run_and_report.add_arguments(parser)
    add_options(parser.add_argument_group("the cluster").add_argument)


def run(args: argparse.Namespace) -> int:
    scenarios = _chosen(args)
    if args.list:
        print("\n".join(s.name for s in scenarios))
        return 0
    from harness.commands._progress import Progress

    choice = _choice(args)
    proof = _run_and_report.Proof(args, Progress(len(scenarios)))
    proof.prepare()
    repeat = ["--seed", str(args.seed), *choice.words()]
    again = partial(_repeat, repeat)
    title = "onceproof prove" + (" --quick" if args.quick else "")
    return proof.carry_out([(choice, scenarios, again)], title, _command(args))


def _repeat(words: Sequence[str], scenario: Scenario) -> str:
    """Return the command line that repeats one run."""
    return " ".join(["./onceproof prove", "--only", scenario.name, *words])


def _chosen(args: argparse.Namespace) -> list[Scenario]:
    from suites.scenarios import matrix

    every = matrix.seeded(matrix.FULL, args.seed)
    quick = {s.name for s in matrix.QUICK}
    chosen = [s for s in every if not args.quick or s.name in quick]
    if args.only:
        for pattern in args.only:
            if not any(fnmatch(s.name, pattern) for s in chosen):
                raise UsageError(
                    f"--only {pattern}: no scenario matches; choose from {', '.join(s.name for s in chosen)}"
                )
        chosen = [s for s in chosen if any(fnmatch(s.name, p) for p in args.only)]
    return chosen


def _choice(args: argparse.Namespace) -> Choice:
    # A broker fault on a combined node hits its controller too; the quick run accepts that for speed.
    if args.quick and args.cluster in (None, "local", "docker") and not args.zookeeper:
        args.combined = True
    return Choice.of(lambda name: getattr(args, name))


def _command(args: argparse.Namespace) -> str:
    words = ["./onceproof", "prove", *(["--quick"] if args.quick else []), *_choice(args).words()]
    return " ".join([*words, *(f"--only '{p}'" for p in args.only), f"--seed {args.seed}"])
