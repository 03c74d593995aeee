"""judge operation histories that another tool recorded

Each FILE contains JSON lines, one event a line (docs/histories.md). All files are judged in one Spark session.
Exit codes: 0 all held, 1 at least one violated, 3 none violated but at least one inconclusive, 2 bad input (file and line).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from harness.contracts import Mode, Verdict
from harness.runtime import exits
from harness.runtime.terminal import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help="history in JSON lines")
    parser.add_argument(
        "--guarantee", metavar="NAME", type=_mode, default=Mode.EXACTLY_ONCE,
        help="guarantee to judge by: at_most_once, at_least_once, idempotent or exactly_once (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--ww-deps",
        action="store_true",
        help="use the offsets of writes as their order when looking for cycles",
    )
    parser.add_argument(
        "--closed",
        action="store_true",
        help="the history contains every send; report a message without a send as a phantom",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line for each file")


def _mode(name: str) -> Mode:
    try:
        return Mode(name.replace("-", "_"))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"unknown guarantee {name!r}; choose one of {', '.join(Mode)}"
        ) from None


def run(args: argparse.Namespace) -> int:
    from harness.histories.parse import read_history

    # All files are read before Spark starts, so that bad input is reported at once.
    histories = [read_history(path) for path in args.files]
    from harness.histories.judge import judge_histories
    from harness.reconcile.spark import jvm, session

    print(f"judging {len(histories)} histories in one job", file=sys.stderr)
    first = not session.started()
    spark = session.spark()
    if first:
        jvm.report_missing_archive(session.MASTER)
    judged = judge_histories(histories, spark, args.guarantee, ww_deps=args.ww_deps, closed=args.closed)
    for one in judged:
        if args.json:
            print(json.dumps(one.to_json()))
            continue
        print(f"{one.verdict.value:13} {printable(one.history.path)}")
        for count in one.judgement.violations:
            print(f"  {count.anomaly}: {count.count} - forbidden: {count.reason}")
        for count in one.judgement.counted:
            print(f"  {count.anomaly}: {count.count} - counted: {count.reason}")
        for doubt in one.judgement.inconclusive:
            print(f"  {printable(doubt)}")
    verdicts = {one.verdict for one in judged}
    if Verdict.VIOLATED in verdicts:
        return exits.VIOLATED
    return exits.INCONCLUSIVE if Verdict.INCONCLUSIVE in verdicts else exits.AS_PROMISED
