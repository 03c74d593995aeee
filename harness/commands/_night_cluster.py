"""The cluster of the commands that run drawn scenarios: nightly, replay and minimise."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cluster_options import Choice, add_options
from harness.errors import UsageError
from harness.ledger.packing import add_keep_option
from harness.provision.kafka import KAFKA_VERSION, must_be_release

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
    cluster = parser.add_argument_group("the cluster")
    if "releases" in also:
        cluster.add_argument(
            "--kafka",
            metavar="VERSION,…",
            help=f"Kafka releases of the brokers; several take turns, e.g. 4.3.1,3.9.2 (default: {KAFKA_VERSION})",
        )
    add_options(cluster.add_argument, without=("kafka",) if "releases" in also else ())


def releases(args: argparse.Namespace) -> list[str]:
    """Return the releases of --kafka if there are several, and leave the first one as the release of the options."""
    found = list(dict.fromkeys(word for word in (args.kafka or "").split(",") if word))
    if len(found) < 2:
        return []
    for option in ("bootstrap", "image", "mixed"):
        if getattr(args, option):
            raise UsageError(
                f"--kafka {args.kafka}: several releases cannot take turns with --{option}; give one release"
            )
    for release in found:
        must_be_release(release)
    args.kafka = found[0]
    return found


def prepare(
    args: argparse.Namespace, progress: Progress, several_releases: Sequence[str] = ()
) -> Making | None:
    """Sweep leftovers and install what is missing, as `prove` does, and every release of the brokers."""
    from harness.commands._preparation import prepare as prepare_folders
    from harness.provision.kafka import kafka_libs

    args.report = getattr(args, "report", None)
    making = prepare_folders(args, progress.note)
    # Now, so that a release that does not exist is reported before the night, not in it.
    for release in several_releases:
        kafka_libs(release, progress.note, exactly=True)
    return making


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
