"""run a stored scenario again, exactly as it was, and print how often it shows what it showed

RUN is a run folder or its scenario.json. Every repeat has the same scenario and the same seed.
Exit codes: 0 every run as its scenario expects, 1 a promise violated (or a control missed), 3 inconclusive.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands import _night_cluster
from harness.errors import UsageError
from harness.runtime import exits

if TYPE_CHECKING:
    from harness.nights.repeats import Repeats


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenario",
        metavar="RUN",
        type=Path,
        help="run folder, or a scenario.json; of the folder of a scenario: its first run",
    )
    parser.add_argument("--times", metavar="N", type=int, default=1, help="number of runs (default: 1)")
    _night_cluster.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from harness.commands._progress import Progress
    from harness.nights.repeats import repeated
    from harness.running.scenario_data import scenario_at
    from harness.trends.recorder import SessionRecorder

    if args.times < 1:
        raise UsageError(f"--times {args.times}: give a number of at least 1")
    scenario = scenario_at(args.scenario)
    progress = Progress(args.times)
    archive = _night_cluster.prepare(args, progress)
    command = f"./onceproof replay {args.scenario}"
    trends = SessionRecorder(args.runs, "replay", progress.note)
    with _night_cluster.shared_cluster(args, progress, [scenario], lambda _: command, trends) as cluster:
        rate = repeated(cluster, scenario, args.times, _night_cluster.shown_by(args.scenario, scenario))
    progress.close()
    if archive is not None:
        archive.finish()
    print(json.dumps(as_data(rate)) if args.json else "\n".join(lines(rate)))
    return exit_code(rate)


def as_data(rate: Repeats) -> dict[str, object]:
    """Return what --json prints."""
    from harness.expectation import Standing

    runs = [
        {
            "verdict": each.verdict,
            "as_expected": each.standing is Standing.AS_PROMISED,
            "anomalies": dict(each.anomalies),
            "bitten": list(each.bitten),
            "trouble": each.trouble,
            "run_dir": str(each.run.path) if each.run is not None else None,
        }
        for each in rate.repeats
    ]
    return {**rate.as_data(), "runs": runs}


def lines(rate: Repeats) -> list[str]:
    """Return the runs, a line each, and the rate."""
    found = []
    for each in rate.repeats:
        place = each.run.path if each.run is not None else "no run folder"
        found.append(f"{each.verdict}  {each.text}  {place}")
    return [*found, f"{rate.scenario.name}, seed {rate.scenario.seed}: {rate.text}"]


def exit_code(rate: Repeats) -> int:
    """Return the code of `prove` for these runs."""
    from harness.expectation import Standing

    standings = {each.standing for each in rate.repeats}
    if standings - {Standing.AS_PROMISED, Standing.UNPROVEN}:
        return exits.VIOLATED
    return exits.INCONCLUSIVE if Standing.UNPROVEN in standings else exits.AS_PROMISED
