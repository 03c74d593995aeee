"""explain the findings of a run, or the history of one record, in plain sentences

Without options: every finding that reconciliation recorded in full. With --message or --position: the history of one record
from the journals of the run; neither Spark nor a cluster is needed. Times are seconds into the run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run_folder", metavar="RUN", type=Path, help="a run folder, or a folder that contains one"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--message", metavar="ID", help="id of a message, as in findings, e.g. producer-1.0-42"
    )
    which.add_argument(
        "--position",
        metavar="TOPIC/PARTITION/OFFSET",
        help="position of a record, e.g. orders/0/17; the topic by name or number",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the explanation; return 0 whatever the findings are."""
    from harness.errors import UsageError
    from harness.explain import questions
    from harness.ledger.packing import readable
    from harness.ledger.rundir import find_runs

    runs = find_runs([args.run_folder])
    if len(runs) > 1:
        raise UsageError(f"{args.run_folder}: contains {len(runs)} runs; name one, e.g. {runs[-1].path}")
    if args.message is None and args.position is None:
        overview = questions.overview(runs[0])
        print(json.dumps(overview) if args.json else questions.overview_text(overview))
        return 0
    with readable(runs[0]) as run:
        if args.message is not None:
            accounts = [questions.account_of_message(run, args.message)]
        else:
            accounts = questions.accounts_of_position(run, args.position)
    if args.json:
        print(json.dumps({"run": runs[0].run_id, "accounts": [account.to_json() for account in accounts]}))
    else:
        print("\n\n".join(account.text() for account in accounts))
    return 0
