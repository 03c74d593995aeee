"""find the verdict on stored runs again, from their files alone

Exit codes: 0 all as the manifest expects, 1 a promise violated (or a control missed), 3 inconclusive, 2 bad input.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", metavar="RUN", type=Path, nargs="+", help="run folders, or folders that hold some"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object for each run, one a line")


def run(args: argparse.Namespace) -> int:
    from harness.assess import assess_many
    from harness.reconcile.session import spark
    from harness.rundir import find_runs
    from reports import summary
    from reports.model import read_runs

    runs = find_runs(args.runs)
    print(f"reconciling {len(runs)} run(s) in one job", file=sys.stderr)
    assessed = assess_many(runs, spark())
    if args.json:
        for one, (reconciled, judgement) in zip(runs, assessed, strict=True):
            told = {"run": str(one.path), **judgement.to_json()}
            print(json.dumps(told | {name: reconciled[name] for name in ("counts", "compared")}))
    rows = read_runs(runs)
    if not args.json:
        print(summary.table(rows, colour=sys.stdout.isatty()))
    return summary.exit_code(rows)
