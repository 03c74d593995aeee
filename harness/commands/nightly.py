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
from harness.runtime.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        "--no-carry",
        action="store_true",
        help="do not begin with the findings of the last nights; without --seed they run first",
    )
    parser.add_argument(
        "--disk-gb",
        metavar="N",
        type=float,
        help="disk budget of the run folders: beyond it runs that are as promised are packed, then reduced to their results, "
        "e.g. 20 (default: no budget)",
    )
    parser.add_argument(
        "--on-finish", metavar="COMMAND", help="shell command that gets the result of --json on stdin"
    )
    _outputs.add_arguments(parser)
    _night_cluster.add_arguments(parser, "report", "releases")


def run(args: argparse.Namespace) -> int:
    from harness.commands._progress import Progress
    from harness.nights.disk_budget import must_have_room
    from harness.nights.journal import NightJournal

    if not args.minutes > 0:
        raise UsageError(f"--minutes {args.minutes:g}: give a number greater than 0")
    if args.disk_gb is not None and not args.disk_gb > 0:
        raise UsageError(f"--disk-gb {args.disk_gb:g}: give a number greater than 0")
    if args.resume and (args.list or args.seed is not None):
        raise UsageError("--resume continues a stored list; leave out --list and --seed")
    releases = _night_cluster.releases(args)
    if args.list:
        plan = _plan(args, releases)
        print(json.dumps(plan.as_data()) if args.json else listed(plan))
        return 0
    must_have_room(args.runs, None if args.resume else args.disk_gb)
    _outputs.check(args)
    from harness.commands._night_result import NightResult

    resumed = NightJournal.resume(args.runs) if args.resume else None
    plan = resumed.state.plan if resumed is not None else _plan(args, releases)
    progress = Progress(len(plan.scenarios))
    archive = _night_cluster.prepare(args, progress, list(dict.fromkeys(plan.kafka.values())))
    journal = resumed or NightJournal.begin(args.runs, plan)
    return NightResult(args, progress, journal, archive).carry_out()


def _plan(args: argparse.Namespace, releases: Sequence[str]) -> Plan:
    """Return the list of this night. Only a list without --seed begins with findings of earlier nights."""
    import random

    from harness.nights.carried import found_lately
    from harness.nights.coverage import covered
    from harness.nights.journal import earlier, nights
    from suites.nights.planning import on_releases, planned, steered_seed, with_carried

    if args.seed is not None:
        return on_releases(planned(args.seed, args.minutes), releases)
    known = covered(earlier(args.runs))
    seed = steered_seed(args.minutes, known, random.sample(range(1, 1_000_000), _SEEDS))
    plan = on_releases(planned(seed, args.minutes), releases)
    return plan if args.no_carry else with_carried(plan, found_lately(nights(args.runs)))


def listed(plan: Plan) -> str:
    """Return the scenarios as a table, without saying which one is unsafe."""
    from reports.summary import aligned

    head = ["", "scenario", "workload", "faults", "judged as"]
    rows = [
        [str(number), each.name, each.workload, each.fault_name, str(each.guarantee)]
        for number, each in enumerate(plan.scenarios, 1)
    ]
    names = [each.name for each in plan.scenarios]
    for title, column in (("Kafka", plan.kafka), ("found before as", plan.carried)):
        if column:
            head.append(title)
            rows = [[*row, printable(column.get(name, ""))] for row, name in zip(rows, names, strict=True)]
    closing = (
        f"seed {plan.seed}, {plan.minutes:g} minutes: {len(plan.scenarios)} scenarios, one of them unsafe"
        + (f", {len(plan.carried)} found by earlier nights" if plan.carried else "")
    )
    return "\n".join([*aligned([head, *rows]), "", closing])
