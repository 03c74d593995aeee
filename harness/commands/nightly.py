"""run drawn scenarios under drawn faults for some time, replay and minimise what they find

One of the scenarios is unsafe on purpose, and has to be found. The same seed gives the same scenarios. Exit codes are those of
`prove`; a night that did not find its unsafe scenario ends with 1.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from harness.commands import _night_cluster, _outputs
from harness.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from harness.nights.plan import Plan

_SEEDS = 12  # that are compared, if none is given


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minutes",
        metavar="N",
        type=float,
        default=60.0,
        help="length of the night in minutes (default: 60)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="seed of the list (default: one whose list covers what earlier nights have not)",
    )
    parser.add_argument("--list", action="store_true", help="print the scenarios and exit")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the newest unfinished night of the runs folder"
    )
    parser.add_argument(
        "--on-finish", metavar="COMMAND", help="shell command that gets the result of --json on stdin"
    )
    _outputs.add_arguments(parser)
    _night_cluster.add_arguments(parser, "report")


def run(args: argparse.Namespace) -> int:
    from harness.commands._progress import Progress
    from harness.nights.journal import NightJournal

    if not args.minutes > 0:
        raise UsageError(f"--minutes {args.minutes:g}: give a number greater than 0")
    if args.resume and (args.list or args.seed is not None):
        raise UsageError("--resume continues a stored list; leave out --list and --seed")
    if args.list:
        plan = _plan(args, args.runs)
        print(json.dumps(plan.as_data()) if args.json else listed(plan))
        return 0
    _outputs.check(args)
    from harness.commands._night_result import NightResult

    if args.resume:
        journal = NightJournal.resume(args.runs)
        progress = Progress(len(journal.state.plan.scenarios))
        archive = _night_cluster.prepare(args, progress)
    else:
        plan = _plan(args, args.runs)
        progress = Progress(len(plan.scenarios))
        archive = _night_cluster.prepare(args, progress)
        journal = NightJournal.begin(args.runs, plan)
    return NightResult(args, progress, journal, archive).carry_out()


def _plan(args: argparse.Namespace, runs: Path) -> Plan:
    import random

    from harness.nights.coverage import NightCoverage
    from harness.nights.journal import earlier
    from suites.nights.planning import planned, steered_seed

    seed = args.seed
    if seed is None:
        covered = NightCoverage.of(earlier(runs)).bit
        seed = steered_seed(args.minutes, covered, random.sample(range(1, 1_000_000), _SEEDS))
    return planned(seed, args.minutes)


def listed(plan: Plan) -> str:
    """Return the scenarios as a table, without saying which one is unsafe."""
    from reports.summary import aligned

    rows = [("", "scenario", "workload", "faults", "judged as")]
    rows += [
        (str(number), each.name, each.workload, each.fault_name, str(each.guarantee))
        for number, each in enumerate(plan.scenarios, 1)
    ]
    closing = (
        f"seed {plan.seed}, {plan.minutes:g} minutes: {len(plan.scenarios)} scenarios, one of them unsafe"
    )
    return "\n".join([*aligned(rows), "", closing])
