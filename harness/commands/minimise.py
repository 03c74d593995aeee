"""find the smallest scenario that still shows the anomaly of a stored run, and print it as a pytest test

RUN is a run folder or its scenario.json. Faults are dropped, windows shortened, and clients, records, partitions and settings
reduced; each step is judged on repeats. Exit codes: 0 done, 3 the scenario did not show the anomaly.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from harness.commands import _night_cluster
from harness.errors import UsageError
from harness.runtime import exits


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenario",
        metavar="RUN",
        type=Path,
        help="run folder, or a scenario.json; of the folder of a scenario: its first run",
    )
    parser.add_argument(
        "--minutes", metavar="N", type=float, default=30.0, help="time for all repeats (default: 30)"
    )
    _night_cluster.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from harness.commands._progress import Progress
    from harness.nights.minimising import minimised
    from harness.running.scenario_data import scenario_at
    from harness.trends.recorder import SessionRecorder

    if not args.minutes > 0:
        raise UsageError(f"--minutes {args.minutes:g}: give a number greater than 0")
    scenario = scenario_at(args.scenario)
    wanted = _night_cluster.shown_by(args.scenario, scenario)
    progress = Progress(0)
    archive = _night_cluster.prepare(args, progress)
    until = time.monotonic() + args.minutes * 60
    command = f"./onceproof minimise {args.scenario}"
    trends = SessionRecorder(args.runs, "minimise", progress.note)
    with _night_cluster.shared_cluster(args, progress, [scenario], lambda _: command, trends) as cluster:
        found = minimised(cluster, scenario, wanted, lambda: time.monotonic() < until, progress.note)
    progress.close()
    if archive is not None:
        archive.finish()
    if args.json:
        print(json.dumps(found.as_data()))
    elif found.shows:
        data = found.as_data()
        how = "no step is left" if found.complete else "the time was up"
        print(
            f"# {found.rate.text}; {len(found.taken)} steps taken, {found.runs} runs, {how}\n{data['test']}",
            end="",
        )
    else:
        print(f"{scenario.name} did not show {' or '.join(wanted) or 'a violation'}: {found.first.text}")
    return exits.AS_PROMISED if found.shows else exits.INCONCLUSIVE
