"""run the delivery modes under faults on a real cluster and say which promises held"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import Future
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from harness.choice import Choice, add_options, running
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.campaign import Campaign, Result
    from harness.contracts import Cluster
    from harness.progress import Progress
    from harness.rundir import RunDir
    from harness.scenario import Scenario


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick", action="store_true", help="three modes under leader kill only, under 100 s"
    )
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="scenarios whose name matches, such as 'exactly_once-*'; may be given again")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print the names of the scenarios and stop")
    parser.add_argument("--seed", type=int, default=1, help="seed of everything random (default: 1)")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="where run folders go (default: runs)"
    )
    parser.add_argument("--report", type=Path, help="where the report goes (default: RUNS/report.html)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object on stdout")
    add_options(parser.add_argument_group("the cluster").add_argument)


def run(args: argparse.Namespace) -> int:
    scenarios = _chosen(args)
    if args.list:
        print("\n".join(s.name for s in scenarios))
        return 0
    from harness.progress import Progress
    from harness.versions import versions
    from reports import summary
    from reports.build import build
    from reports.model import read_runs

    began, started = time.monotonic(), time.strftime("%Y-%m-%d %H:%M:%S %z")
    progress = Progress(len(scenarios))
    runs = _prove(args, scenarios, progress)
    report = build(
        runs,
        args.report or args.runs / "report.html",
        title="onceproof prove" + (" --quick" if args.quick else ""),
        command=_command(args),
        seed=args.seed,
        versions=versions(),
        started=started,
        seconds=time.monotonic() - began,
    )
    rows = read_runs(runs)
    if args.json:
        print(json.dumps(summary.summary(rows, report, args.seed, versions())))
    else:
        print(summary.table(rows, colour=sys.stdout.isatty()))
        print(f"report: {report}")
    return summary.exit_code(rows)


def _chosen(args: argparse.Namespace) -> list[Scenario]:
    from suites import matrix

    every = matrix.seeded(matrix.FULL, args.seed)
    quick = {s.name for s in matrix.QUICK}
    chosen = [s for s in every if not args.quick or s.name in quick]
    if args.only:
        for pattern in args.only:
            if not any(fnmatch(s.name, pattern) for s in chosen):
                raise UsageError(
                    f"--only {pattern}: no scenario has such a name; there are: {', '.join(s.name for s in chosen)}"
                )
        chosen = [s for s in chosen if any(fnmatch(s.name, p) for p in args.only)]
    return chosen


def _prove(args: argparse.Namespace, scenarios: list[Scenario], progress: Progress) -> list[RunDir]:
    from harness import owned, provision
    from harness.campaign import Campaign
    from harness.versions import versions

    choice = _choice(args)
    args.runs.mkdir(parents=True, exist_ok=True)
    for swept in owned.sweep(args.runs):
        progress.note(swept)
    if choice.cluster == "existing":
        provision.java(progress.note)  # for reconciling; nothing is started
    else:
        provision.ensure_all(progress.note)
    with ExitStack() as stack:
        stack.callback(progress.close)
        folder = owned.new_cluster_folder(args.runs)
        cluster = choice.build(folder)
        campaign = stack.enter_context(
            Campaign(
                cluster,
                args.runs,
                say=progress.tell,
                command_for=lambda s: " ".join(
                    ["./onceproof prove", "--only", s.name, "--seed", str(args.seed), *choice.words()]
                ),
                versions=versions(),
            )
        )
        progress.tell("cluster", f"starting {choice}")
        with running(cluster):
            scenarios = _possible(scenarios, cluster, progress)
            progress.note(f"cluster ready after {cluster.describe()['steps_s']['ready']} s")
            runs = _run_all(campaign, scenarios, progress)
        owned.remove(folder)  # only now: its logs tell why a cluster did not come up
        return runs


def _possible(scenarios: list[Scenario], cluster: Cluster, progress: Progress) -> list[Scenario]:
    """Without those that the cluster has no powers for, each told with its reason."""
    from harness.possible import impossible

    reasons = [impossible(scenario, cluster) for scenario in scenarios]
    for reason in filter(None, reasons):
        progress.note(f"skipped {reason}")
    left = [scenario for scenario, reason in zip(scenarios, reasons, strict=True) if reason is None]
    if not left:
        raise UsageError(f"nothing is left to prove: {next(filter(None, reasons))}")
    return left


def _run_all(campaign: Campaign, scenarios: list[Scenario], progress: Progress) -> list[RunDir]:
    """Run one after the other; each is reconciled while the next one runs."""
    futures: list[Future[Result]] = []
    for number, scenario in enumerate(scenarios, start=1):
        progress.begin(number, scenario.name)
        future = campaign.run(scenario)
        future.add_done_callback(progress.done)
        futures.append(future)
    return [future.result().run for future in futures]


def _choice(args: argparse.Namespace) -> Choice:
    # Broker faults take the controllers of combined nodes along; the quick run accepts that for its speed.
    if args.quick and args.cluster in (None, "local"):
        args.combined = True
    return Choice.of(lambda name: getattr(args, name))


def _command(args: argparse.Namespace) -> str:
    words = ["./onceproof", "prove", *(["--quick"] if args.quick else []), *_choice(args).words()]
    return " ".join([*words, *(f"--only '{p}'" for p in args.only), f"--seed {args.seed}"])
