"""search for suspected defects of Kafka or its clients, and print how often they were found

Without names every hunt runs. Each hunt writes an evidence folder to attach to a bug report. Exit code 1: something was found.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cluster_options import Choice, add_options
from harness.ledger.packing import add_keep_option
from harness.runtime import exits

if TYPE_CHECKING:
    from harness.hunts.hunt import HuntResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="hunts, e.g. wiped_leader (default: all)")
    parser.add_argument("--list", action="store_true", help="print the hunts with their questions, and exit")
    parser.add_argument(
        "--runs-each", type=int, metavar="N", help="runs of each hunt (default: the budget of the hunt)"
    )
    parser.add_argument(
        "--minutes", type=float, metavar="M", help="time limit for all hunts together, e.g. 60"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="seed of the first run; the next run has the next one (default: 1)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object on stdout")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="folder for the run folders (default: runs)"
    )
    parser.add_argument("--evidence", type=Path, default=Path("evidence"),
                        help="folder for the evidence folders (default: evidence)")  # fmt: skip
    add_keep_option(parser.add_argument)
    add_options(parser.add_argument_group("the clusters").add_argument)


def run(args: argparse.Namespace) -> int:
    from harness.hunts import listing
    from harness.hunts.account import exit_code, text_of
    from harness.hunts.hunting import Budget

    hunts = listing.chosen(listing.found(), args.names)
    if args.list:
        if args.json:
            rows = [{"id": name, "title": hunt.title, "runs": hunt.runs, "sources": list(hunt.sources)}
                    for name, hunt in hunts.items()]  # fmt: skip
            print(json.dumps({"hunts": rows}))
        else:
            print(
                "\n".join(
                    f"{name:24} {hunt.title} ({', '.join(hunt.sources)})" for name, hunt in hunts.items()
                )
            )
        return exits.AS_PROMISED
    budget = Budget(args.runs_each, args.minutes)
    choice = Choice.of(lambda name: getattr(args, name))
    choice.check()
    from harness.commands import _run_and_report
    from harness.commands._progress import Progress
    from harness.hunts.hunting import HuntingGround, hunt_all
    from harness.provision.versions import versions

    progress = Progress(len(hunts))
    args.report = None
    _run_and_report.Proof(args, progress).prepare()
    ground = HuntingGround(
        choice=choice,
        runs=args.runs,
        evidence=args.evidence,
        seed=args.seed,
        keep=args.keep,
        versions=versions(choice.kafka),
        say=progress.note,
    )
    results: list[HuntResult] = []
    try:
        hunt_all(hunts, ground, budget, results)
    except Exception as error:  # an error never hides what was found
        if exit_code(results) != exits.VIOLATED:
            raise
        progress.note(f"ended early: {type(error).__name__}: {error}")
    finally:  # an interrupted hunt reports the runs that it had
        if args.json:
            print(json.dumps({"hunts": [each.as_data() for each in results]}), flush=True)
        else:
            print("\n\n".join(text_of(each) for each in results), flush=True)
    return exit_code(results)
