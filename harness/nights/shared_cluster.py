"""The cluster of a night: started when a run needs it, shared by the runs, replaced when it is not healthy."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.campaign import Campaign, Result, Say
from harness.cluster_options import Choice, running
from harness.contracts import Cluster
from harness.errors import ClusterError, SetupError, UsageError
from harness.injector import why_not_applicable
from harness.ledger.rundir import RunDir
from harness.nights.leaks import Usage, leaks
from harness.nights.watchdog import StuckRun, limit_s, watched
from harness.processes import ownership
from harness.provision.kafka import numbers_of
from harness.running.recovery import why_unusable
from harness.scenario import Scenario
from harness.trends.recorder import SessionRecorder

STARTS = 3  # of a cluster, until one comes up
MOST_RUNS = 40  # on one cluster: then it is replaced, so that leaks show


@dataclass(frozen=True)
class Execution:
    """One executed run, or why there is none. `future` has its verdict when it is reconciled."""

    scenario: Scenario
    seconds: float = 0.0
    run: RunDir | None = None
    future: Future[Result] | None = None
    skipped: str = ""  # why this cluster cannot run the scenario
    trouble: str = ""  # the run was stuck, or an internal error ended it
    kafka: str = ""  # the release that the brokers reported


@dataclass
class SharedCluster:
    """Runs scenarios on one cluster after the other, as a context manager.

    `changed` is called after each stop of a cluster, with the leaks that were found; `after_run` after each run.
    """

    choice: Choice
    runs: Path
    keep: str
    versions: Mapping[str, str]
    say: Say
    command_for: Callable[[Scenario], str]
    trends: SessionRecorder
    changed: Callable[[str, Sequence[str]], None] = lambda why, found: None
    limit_of: Callable[[Scenario], float] = limit_s
    after_run: Callable[[], None] = lambda: None
    kafka: list[str] = field(default_factory=list)  # versions, as the clusters reported them
    _stack: ExitStack = field(default_factory=ExitStack)
    _begun: tuple[Cluster, Campaign, Path] | None = None
    _running: str = ""  # the release that the cluster was asked for
    _release: str = ""  # the release that it reported
    _runs_on_it: int = 0
    _usage: Usage | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close("the end")
        else:
            self._stack.__exit__(kind, error, trace)  # results are not waited for after an error

    def use(self, kafka: str) -> None:
        """Run what follows on brokers of this release; an empty text changes nothing."""
        if kafka:
            self.choice = replace(self.choice, kafka=kafka)

    def run(self, scenario: Scenario) -> Execution:
        """Execute a scenario; replace the cluster before it if necessary, and after a run that was stuck or failed."""
        cluster, campaign = self._ready()
        if reason := why_not_applicable(scenario, cluster) or why_too_old(scenario, self._release):
            return Execution(scenario, skipped=reason.removeprefix(f"{scenario.name}: "))
        began, broken = time.monotonic(), len(campaign.broken)
        seconds = self.limit_of(scenario)
        try:
            with watched(seconds):
                future = campaign.run(scenario)
        except StuckRun as error:
            run = newest_run(self.runs, scenario.name)
            self.close(f"{scenario.name}: {error}")
            return Execution(scenario, time.monotonic() - began, run, trouble=str(error))
        except (UsageError, SetupError) as error:  # refused before it began
            return Execution(scenario, skipped=str(error))
        self._runs_on_it += 1
        self.after_run()
        run, trouble = campaign.runs[-1], ""
        if len(campaign.broken) > broken:
            trouble = str(campaign.broken[-1])
        return Execution(
            scenario,
            time.monotonic() - began,
            run,
            None if trouble else future,
            trouble=trouble,
            kafka=self._release,
        )

    def close(self, why: str) -> None:
        """Stop the cluster, wait until its runs are judged, and look for leaks."""
        if self._begun is None:
            return
        folder = self._begun[2]
        self._begun = None
        self._stack.close()
        usage = Usage.now(folder)
        found, self._usage = leaks(self._usage, usage), usage
        ownership.remove(folder)
        self.changed(why, found)

    def _ready(self) -> tuple[Cluster, Campaign]:
        """Return a healthy cluster and its campaign."""
        if self._begun is not None:
            cluster, campaign, _ = self._begun
            if not (why := self._why_replaced(cluster)):
                return cluster, campaign
            self.say("cluster", f"is replaced: {why}")
            self.close(why)
        return self._start()

    def _why_replaced(self, cluster: Cluster) -> str:
        if self._running != self.choice.kafka:
            return f"the next run needs Kafka {self.choice.kafka}"
        if self._runs_on_it >= MOST_RUNS:
            return f"{MOST_RUNS} runs on one cluster"
        return why_unusable(cluster)

    def _start(self) -> tuple[Cluster, Campaign]:
        """Start a cluster; retry a few times, because one busy moment should not end a night."""
        for attempt in range(1, STARTS + 1):
            try:
                return self._started()
            except ClusterError as error:
                self._stack.close()
                if attempt == STARTS:
                    raise
                self.say("cluster", f"did not start, trying again: {error}")
        raise AssertionError("unreachable")

    def _started(self) -> tuple[Cluster, Campaign]:
        folder = ownership.new_cluster_folder(self.runs)
        cluster = self.choice.build(folder)
        self.say("cluster", f"starting {self.choice}")
        campaign = self._stack.enter_context(
            Campaign(
                cluster,
                self.runs,
                say=self.say,
                command_for=self._command_for(self.choice),
                versions=self.versions,
                keep=self.keep,
                pack_at_once=True,
                trends=self.trends,
            )
        )
        self._stack.enter_context(
            running(cluster)
        )  # is stopped before the campaign ends: Spark needs no cluster
        self._begun = cluster, campaign, folder
        self._runs_on_it, self._running = 0, self.choice.kafka
        self._release = cluster.describe().kafka_version or ""
        self.kafka.append(self._release or "unknown")
        return cluster, campaign

    def _command_for(self, choice: Choice) -> Callable[[Scenario], str]:
        """Return the commands that repeat a run on such a cluster."""
        words = choice.words()
        return lambda scenario: " ".join([self.command_for(scenario), *map(shlex.quote, words)])


def why_too_old(scenario: Scenario, release: str) -> str:
    """Return why a release of the brokers does not support a setting that nights draw; an unknown release supports all."""
    numbers = numbers_of(release)
    if scenario.consumers.group_protocol == "consumer" and numbers and numbers < (4,):
        return f"the group protocol consumer needs Kafka 4.0 or newer, the brokers are {release}"
    return ""


def newest_run(runs: Path, scenario: str) -> RunDir | None:
    """Return the folder of the last run of a scenario."""
    found = sorted(path for path in (runs / scenario).glob("*") if path.is_dir())
    return RunDir(found[-1].resolve()) if found else None
