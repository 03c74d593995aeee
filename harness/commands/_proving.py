"""What commands that run scenarios on clusters share: run them, write one report of all, print the summary."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.choice import Choice, running
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.campaign import Campaign, Result
    from harness.contracts import Cluster
    from harness.progress import Progress
    from harness.rundir import RunDir
    from harness.scenario import Scenario

CommandFor = Callable[["Scenario"], str]  # the command line that repeats one scenario's run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1, help="seed of everything random (default: 1)")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="where run folders go (default: runs)"
    )
    parser.add_argument("--report", type=Path, help="where the report goes (default: RUNS/report.html)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object on stdout")


@dataclass
class Proof:
    """Runs of one command, on one cluster after the other, in one report."""

    args: argparse.Namespace
    progress: Progress
    runs: list[RunDir] = field(default_factory=list)
    kafka: list[str] = field(default_factory=list)  # versions that really ran
    _began: float = field(default_factory=time.monotonic)
    _started: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M:%S %z"))

    def prepare(self) -> None:
        """Sweep what crashed runs left, and fetch what is missing."""
        from harness import owned, provision

        self.args.runs.mkdir(parents=True, exist_ok=True)
        for swept in owned.sweep(self.args.runs):
            self.progress.note(swept)
        if self.args.cluster == "existing":
            provision.java(self.progress.note)  # for reconciling; nothing is started
        else:
            provision.ensure_all(self.progress.note)

    def run(self, choice: Choice, scenarios: Sequence[Scenario], command_for: CommandFor) -> None:
        """Run all scenarios on a cluster of their own."""
        from harness import owned
        from harness.campaign import Campaign
        from harness.layout import laid_out_for
        from harness.versions import versions

        with ExitStack() as stack:
            stack.callback(self.progress.close)
            folder = owned.new_cluster_folder(self.args.runs)
            cluster = laid_out_for(choice, scenarios).build(folder)
            campaign = stack.enter_context(
                Campaign(
                    cluster,
                    self.args.runs,
                    say=self.progress.tell,
                    command_for=command_for,
                    versions=versions(),
                )
            )
            self.progress.tell("cluster", f"starting {choice}")
            with running(cluster):
                told = cluster.describe()
                self.progress.note(f"cluster ready after {told['steps_s']['ready']} s")
                for text in told.get("not_checked", ()):
                    self.progress.note(text)
                self.kafka.append(str(told.get("kafka_version", "unknown")))
                futures = self._run_all(campaign, self._possible(scenarios, cluster))
            owned.remove(folder)  # only now: its logs tell why a cluster did not come up
            self.runs += [future.result().run for future in futures]  # the cluster is not needed for that

    def _possible(self, scenarios: Sequence[Scenario], cluster: Cluster) -> list[Scenario]:
        """Without those that the cluster has no powers for, each told with its reason."""
        from harness.possible import impossible  # here, so that --help stays quick

        reasons = [impossible(scenario, cluster) for scenario in scenarios]
        for reason in filter(None, reasons):
            self.progress.note(f"skipped {reason}")
        left = [scenario for scenario, reason in zip(scenarios, reasons, strict=True) if reason is None]
        if not left:
            raise UsageError(
                f"nothing is left to prove: {next(filter(None, reasons))}; "
                "prove --only '*-none' runs the modes without faults"
            )
        return left

    def _run_all(self, campaign: Campaign, scenarios: Sequence[Scenario]) -> list[Future[Result]]:
        """Run one after the other; each is reconciled while the next one runs."""
        futures: list[Future[Result]] = []
        for number, scenario in enumerate(scenarios, start=len(self.runs) + 1):
            self.progress.begin(number, scenario.name)
            future = campaign.run(scenario)
            future.add_done_callback(self.progress.done)
            futures.append(future)
        return futures

    def publish(self, title: str, command: str) -> int:
        """Write the report, print the summary; the exit code."""
        from harness.versions import versions
        from reports import summary
        from reports.build import build
        from reports.model import read_runs

        args, known = self.args, versions(", ".join(dict.fromkeys(self.kafka)))
        report = build(
            self.runs,
            args.report or args.runs / "report.html",
            title=title,
            command=command,
            seed=args.seed,
            versions=known,
            started=self._started,
            seconds=time.monotonic() - self._began,
        )
        rows = read_runs(self.runs)
        if args.json:
            print(json.dumps(summary.summary(rows, report, args.seed, known)))
        else:
            print(summary.table(rows, colour=sys.stdout.isatty()))
            print(f"report: {report}")
        return summary.exit_code(rows)
