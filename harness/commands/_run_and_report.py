"""Run scenarios on clusters, write one report, print the summary: shared by the commands that do so.

Whatever ends the runs early, the report on the completed runs is written first. The exit code is the first that applies: 130
interrupted; 1 a promise violated or a control missed; 70 an internal error, 2 a failed cluster or set-up; 3 a run is
INCONCLUSIVE; 0. Skipped scenarios do not change it, unless all are skipped: then there is nothing to prove (2). A command may
give another account of the runs, with its own summary and exit code (`reports.summary.Account`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cluster_options import Choice, running
from harness.commands import _outputs
from harness.errors import OnceproofError, SetupError, UsageError
from harness.ledger.packing import add_keep_option

if TYPE_CHECKING:
    from harness.campaign import Campaign, Result
    from harness.commands._progress import Progress
    from harness.contracts import Cluster
    from harness.ledger.rundir import RunDir
    from harness.provision.background_archive import Making
    from harness.scenario import Scenario
    from harness.trends.recorder import SessionRecorder
    from reports.summary import Accounting

CommandFor = Callable[["Scenario"], str]  # the command line that repeats one scenario's run
Job = tuple[Choice, Sequence["Scenario"], CommandFor]  # scenarios that share one cluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1, help="seed of all random choices (default: 1)")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="folder for the run folders (default: runs)"
    )
    add_keep_option(parser.add_argument)
    parser.add_argument("--report", type=Path, help="file for the HTML report (default: RUNS/report.html)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object on stdout")
    _outputs.add_arguments(parser)


@dataclass
class Proof:
    """The runs of one command, on one or several clusters in sequence, in one report."""

    args: argparse.Namespace
    progress: Progress
    runs: list[RunDir] = field(default_factory=list)  # completed and broken ones
    kafka: list[str] = field(default_factory=list)  # versions, as the clusters reported them
    account: Accounting | None = None  # the summary of the runs; None: that of reports.summary
    # A cluster that this machine or these options cannot have skips its scenarios. Otherwise it ends the command.
    skips_impossible: bool = False
    if_all_skipped: str = "; use prove --only '*-none' to run the modes without faults"  # the remedy
    _planned: int = 0
    _skipped: dict[str, str] = field(default_factory=dict)  # reasons by scenario
    _seconds: dict[str, float] = field(default_factory=dict)  # that each run took
    _impossible: list[OnceproofError] = field(default_factory=list)  # why clusters could not be had
    _errors: list[str] = field(default_factory=list)
    _unforeseen: list[BaseException] = field(default_factory=list)
    _archive: Making | None = None
    _trends: SessionRecorder | None = None
    _began: float = field(default_factory=time.monotonic)
    _started: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M:%S %z"))

    def prepare(self) -> None:
        """Undo and sweep leftovers of crashed runs, install missing tools, begin to make Spark's class archive."""
        from harness.commands._preparation import prepare

        _outputs.check(self.args)
        self._archive = prepare(self.args, self.progress.note)

    def carry_out(self, jobs: Sequence[Job], title: str, command: str) -> int:
        """Run all jobs, write the report, print the summary; return the exit code.

        An interruption or an error is raised again after the report on the completed runs is written.
        """
        from harness.trends.recorder import SessionRecorder

        self._planned = sum(len(scenarios) for _choice, scenarios, _command_for in jobs)
        self._trends = SessionRecorder(self.args.runs, self.args.command, self.progress.note)
        ended: BaseException | None = None
        try:
            for job in jobs:
                self._run(*job)
            self._must_have_run()
        except (Exception, KeyboardInterrupt) as error:
            if not self.runs:
                raise
            ended = error
            if not isinstance(error, KeyboardInterrupt) and error not in self._unforeseen:
                self._fail(str(error) if isinstance(error, OnceproofError) else _internal(error))
        code = self._publish(title, command, ended)
        failed = [*([ended] if ended is not None else []), *self._unforeseen]
        if self._archive is not None:
            if failed:
                self._archive.give_up()
            else:
                self._archive.finish()
        if failed and (code != 1 or isinstance(ended, KeyboardInterrupt)):
            raise failed[0]
        return code

    def _run(self, choice: Choice, scenarios: Sequence[Scenario], command_for: CommandFor) -> None:
        """Run all scenarios of a job on a new cluster."""
        from harness.campaign import Campaign
        from harness.cluster_options import laid_out_for
        from harness.processes import ownership
        from harness.provision.versions import versions

        with ExitStack() as stack:
            stack.callback(self.progress.close)
            folder = ownership.new_cluster_folder(self.args.runs)
            try:
                cluster = laid_out_for(choice, scenarios).build(folder)
            except (SetupError, UsageError) as error:
                self._skip_all(scenarios, error)
                ownership.remove(folder)
                return
            campaign = stack.enter_context(
                Campaign(
                    cluster, self.args.runs, say=self.progress.show, command_for=command_for, versions=versions(),
                    keep=self.args.keep, pack_at_once=True, trends=self._trends,
                )
            )  # fmt: skip
            futures: dict[str, Future[Result]] = {}
            self.progress.show("cluster", f"starting {choice}")
            ready = False
            try:
                with running(cluster):
                    ready = True
                    described = cluster.describe()
                    self.progress.note(f"cluster ready after {described.steps_s['ready']} s")
                    for text in described.not_checked:
                        self.progress.note(text)
                    self.kafka.append(described.kafka_version or "unknown")
                    self._run_all(campaign, cluster, self._possible(scenarios, cluster), futures)
                ownership.remove(folder)  # only now: its logs show why a cluster did not start
            except (SetupError, UsageError) as error:
                if ready:
                    raise
                self._skip_all(scenarios, error)
            except KeyboardInterrupt:
                if futures:
                    self.progress.note("interrupted: reconciling the completed runs; Ctrl-C skips that")
                raise
            finally:
                self.runs += campaign.runs
                self._await(futures)  # the cluster is not needed any more

    def _skip_all(self, scenarios: Sequence[Scenario], error: OnceproofError) -> None:
        """Skip the scenarios of a cluster that cannot be had. Raise the error if that ends the command."""
        if not self.skips_impossible:
            raise error
        self._impossible.append(error)
        for scenario in scenarios:
            self._skip(scenario.name, str(error))

    def _skip(self, name: str, reason: str) -> None:
        self._skipped[name] = reason
        self.progress.note(f"skipped {name}: {reason}")

    def _must_have_run(self) -> None:
        """Raise the first reason if every scenario was skipped."""
        if not self.runs and self._impossible:
            raise self._impossible[0]
        if not self.runs and self._skipped:
            name, reason = next(iter(self._skipped.items()))
            raise UsageError(f"all scenarios are skipped: {name}: {reason}{self.if_all_skipped}")

    def _possible(self, scenarios: Sequence[Scenario], cluster: Cluster) -> list[Scenario]:
        """Return the scenarios that the cluster has the powers for; note the others with the reason."""
        from harness.injector import why_not_applicable

        reasons = {scenario.name: why_not_applicable(scenario, cluster) for scenario in scenarios}
        for name, reason in reasons.items():
            if reason is not None:
                self._skip(name, reason.removeprefix(f"{name}: "))
        return [scenario for scenario in scenarios if reasons[scenario.name] is None]

    def _run_all(
        self,
        campaign: Campaign,
        cluster: Cluster,
        scenarios: Sequence[Scenario],
        futures: dict[str, Future[Result]],
    ) -> None:
        """Run the scenarios in sequence; each is reconciled while the next one runs.

        After an internal error the next one runs only if the cluster answers and no fault has left anything.
        """
        from harness.running.recovery import why_unusable

        for number, scenario in enumerate(scenarios, start=len(self.runs) + 1):
            self.progress.begin(number, scenario.name)
            broken, began = len(campaign.broken), time.monotonic()
            future = campaign.run(scenario)
            self._seconds[scenario.name] = time.monotonic() - began
            future.add_done_callback(self.progress.done)
            futures[scenario.name] = future
            if len(campaign.broken) > broken and why_unusable(cluster):
                raise campaign.broken[-1].error

    def _await(self, futures: Mapping[str, Future[Result]]) -> None:
        """Wait until all runs are reconciled. A run that cannot be is reported by name, without counts."""
        from harness.execute import BrokenRun

        for name, future in futures.items():
            try:
                future.result()
            except BrokenRun as error:
                self._unforeseen.append(error.error)
                self._fail(f"{name}: {error}")
            except OnceproofError as error:
                self._fail(f"{name}: not reconciled: {error}")
            except Exception as error:  # noqa: BLE001  the other runs are reported first, then it is raised
                self._unforeseen.append(error)
                self._fail(f"{name}: not reconciled: {_internal(error)}")

    def _fail(self, text: str) -> None:
        self._errors.append(" ".join(text.split()))
        self.progress.note(self._errors[-1])

    def _publish(self, title: str, command: str, ended: BaseException | None) -> int:
        """Write the report, print the summary; return the exit code of the runs."""
        from harness.provision.versions import versions
        from reports import summary
        from reports.build import build
        from reports.course import COMPLETE, FAILED, INTERRUPTED, Course
        from reports.model import read_runs

        how = COMPLETE if ended is None else INTERRUPTED if isinstance(ended, KeyboardInterrupt) else FAILED
        course = Course(
            self._planned - len(self._skipped), self._skipped, how, tuple(self._errors), self._seconds
        )
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
            course=course,
        )
        read = read_runs(self.runs)
        account = (self.account or summary.account)(
            read, report, args.seed, known, course, sys.stdout.isatty()
        )
        text = json.dumps(account.data) if args.json else f"{account.text}\nreport: {report}"
        _outputs.print_result(text, interrupted=how == INTERRUPTED)
        _outputs.publish_for_ci(args, title, self._started, read, course)
        return account.code


def _internal(error: BaseException) -> str:
    return f"an error of onceproof: {type(error).__name__}: {error}"
