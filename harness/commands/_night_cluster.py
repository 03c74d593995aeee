"""The cluster of the commands that run drawn scenarios: nightly, replay and minimise."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cluster_options import Choice, add_options
from harness.ledger.packing import add_keep_option

if TYPE_CHECKING:
    from harness.commands._progress import Progress
    from harness.nights.shared_cluster import SharedCluster
    from harness.provision.background_archive import Making
    from harness.scenario import Scenario
    from harness.trends.recorder import SessionRecorder


def add_arguments(parser: argparse.ArgumentParser, *also: str) -> None:
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="folder for the run folders (default: runs)"
    )
    add_keep_option(parser.add_argument)
    if "report" in also:
        parser.add_argument(
            "--report", type=Path, help="file for the HTML report (default: RUNS/report.html)"
        )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object on stdout")
    add_options(parser.add_argument_group("the cluster").add_argument)


def prepare(args: argparse.Namespace, progress: Progress) -> Making | None:
    """Sweep leftovers and install what is missing, as `prove` does."""
    from harness.commands._preparation import prepare as prepare_folders

    args.report = getattr(args, "report", None)
    return prepare_folders(args, progress.note)


def shared_cluster(
    args: argparse.Namespace,
    progress: Progress,
    scenarios: Sequence[Scenario],
    command_for: Callable[[Scenario], str],
    trends: SessionRecorder,
    changed: Callable[[str, Sequence[str]], None] | None = None,
) -> SharedCluster:
    """Return the cluster that the options name, with the powers that the scenarios need; it is not started yet."""
    from harness.nights.shared_cluster import SharedCluster
    from harness.provision.versions import versions
    from suites.nights.layout import for_scenarios

    def note(_why: str, found: Sequence[str]) -> None:
        for line in found:
            progress.note(f"left by the cluster: {line}")

    choice = for_scenarios(Choice.of(lambda name: getattr(args, name)), scenarios)
    return SharedCluster(
        choice,
        args.runs,
        args.keep,
        versions(),
        progress.show,
        command_for,
        trends,
        changed or note,
    )


def shown_by(path: Path, scenario: Scenario) -> Sequence[str]:
    """Return the forbidden anomalies that the stored run shows. If it has no verdict: those that its scenario requires."""
    from harness.guarantees import TABLE
    from harness.ledger.rundir import read_json
    from harness.running.scenario_data import run_at

    run = run_at(path)
    if run.manifest.exists() and run.verdict.exists():
        stored = read_json(run.verdict, "reconcile the run again").get("violations")
        shown = (
            [each.get("anomaly") for each in stored if isinstance(each, dict)]
            if isinstance(stored, list)
            else []
        )
        if known := sorted({name for name in shown if isinstance(name, str) and name in TABLE}):
            return tuple(known)
    return tuple(scenario.requires)
