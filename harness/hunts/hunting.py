"""Run hunts: each on clusters as it needs them, until its budget is used up."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.campaign import Campaign, Result
from harness.claims.checking import Workplace, chosen_for
from harness.cluster_options import laid_out_for, running
from harness.contracts import Cluster
from harness.errors import ClusterError, OnceproofError, SetupError, UsageError, WaitTimeout
from harness.execute import BrokenRun
from harness.hunts.evidence import EvidenceFolder
from harness.hunts.hunt import Hunt, HuntedRun, HuntResult
from harness.injector import why_not_applicable
from harness.processes import ownership
from harness.running.recovery import why_unusable
from harness.waiting import wait_until

if TYPE_CHECKING:
    from harness.scenario import Scenario


@dataclass(frozen=True)
class Budget:
    """How long to hunt: runs of each hunt, or a time limit for all; without both, the budget of each hunt."""

    runs_each: int | None = None
    minutes: float | None = None

    def __post_init__(self) -> None:
        if self.runs_each is not None and self.minutes is not None:
            raise UsageError("hunt: give --runs-each or --minutes, not both")
        if self.runs_each is not None and self.runs_each < 1:
            raise UsageError(f"--runs-each {self.runs_each}: at least 1")
        if self.minutes is not None and not self.minutes > 0:
            raise UsageError(f"--minutes {self.minutes:g}: more than 0")


@dataclass(frozen=True, kw_only=True)
class HuntingGround(Workplace):
    """The clusters and folders with which hunts are run."""

    evidence: Path
    patience_s: float = 60.0  # for a cluster to be whole again after a run

    def command(self, name: str, seed: int, runs_each: int) -> str:
        """Return the command that repeats runs of a hunt."""
        words = self.choice.words()
        return " ".join(["./onceproof hunt", name, *words, f"--runs-each {runs_each} --seed {seed}"])


@dataclass
class Hunting:
    """A hunt that is being run, with its result so far. A cluster that a run left damaged is replaced by a new one."""

    result: HuntResult
    ground: HuntingGround
    most_runs: int | None
    ends: float  # time limit, of time.monotonic
    begun: int = 0
    _pending: deque[tuple[Scenario, float, Future[Result]]] = field(default_factory=deque)

    def run(self) -> None:
        """Run until the budget is used up, and write the evidence folder, also after an interruption."""
        folder = EvidenceFolder(self.ground.evidence / self.result.name, self.result.hunt)
        try:
            while self._goes_on():
                begun = self.begun
                try:
                    self._on_one_cluster(folder)
                except ClusterError as error:
                    # The cluster did not start, or it ended: this attempt counts as a run that broke off.
                    self.begun = max(self.begun, begun + 1)
                    self._add(self._broken(self.result.hunt.scenario(self._seed(begun)), error, 0.0))
        except (SetupError, UsageError) as error:
            if self.result.runs:
                raise
            self.result.not_run = str(error)
            self.ground.say(f"{self.result.name}: not run: {error}")
        finally:
            if self.result.runs:
                command = self.ground.command(self.result.name, self.ground.seed, len(self.result.runs))
                self.result.evidence = folder.write(self.result, self.ground.versions, command)

    def _goes_on(self) -> bool:
        if self.most_runs is not None:
            return self.begun < self.most_runs
        return not self.begun or time.monotonic() < self.ends

    def _on_one_cluster(self, folder: EvidenceFolder) -> None:
        """Run on a new cluster until the budget is used up or the cluster is damaged."""
        hunt, ground = self.result.hunt, self.ground
        first = hunt.scenario(self._seed(self.begun))
        choice = laid_out_for(chosen_for(hunt.needs, ground.choice), [first])
        place = ownership.new_cluster_folder(ground.runs)
        with ExitStack() as stack:
            ground.say(f"{self.result.name}: starting {choice}")
            cluster = ground.build(choice, place)
            campaign = stack.enter_context(
                Campaign(
                    cluster, ground.runs, versions=ground.versions, keep=ground.keep,
                    say=lambda scenario, text: ground.say(f"  {scenario}: {text}"),
                    command_for=lambda one: ground.command(self.result.name, one.seed, 1),
                )
            )  # fmt: skip
            stack.callback(self._take, campaign, folder, wait=True)
            stack.enter_context(running(cluster))
            while self._goes_on():
                seed = self._seed(self.begun)
                scenario = hunt.scenario(seed).with_seed(seed)
                if reason := why_not_applicable(scenario, cluster):
                    raise UsageError(reason)
                self.begun += 1
                began = time.monotonic()
                future = campaign.run(scenario)
                self._pending.append((scenario, time.monotonic() - began, future))
                self._take(campaign, folder, wait=False)
                if damage := _damage(cluster, ground.patience_s):
                    ground.say(
                        f"{self.result.name}: the cluster is damaged ({damage}); continuing on a new one"
                    )
                    return

    def _take(self, campaign: Campaign, folder: EvidenceFolder, *, wait: bool) -> None:
        """Record the results that are ready; with `wait`, wait for all of them."""
        while self._pending and (wait or self._pending[0][2].done()):
            scenario, seconds, future = self._pending.popleft()
            try:
                result = future.result()
            except (OnceproofError, BrokenRun) as error:
                self._add(self._broken(scenario, error, seconds))
                continue
            run = HuntedRun.of(result, seconds, self.result.hunt.stuck)
            folder.keep(run, result)
            campaign.pack(result)
            self._add(run)

    def _seed(self, number: int) -> int:
        return self.ground.seed + number

    @staticmethod
    def _broken(scenario: Scenario, error: Exception, seconds: float) -> HuntedRun:
        """Return the account of a run that broke off."""
        return HuntedRun(seed=scenario.seed, scenario=scenario.name, path=None, verdict="", doubts=(str(error),),
                         seconds=round(seconds, 1))  # fmt: skip

    def _add(self, run: HuntedRun) -> None:
        self.result.runs.append(run)
        what = ", ".join(f"{name} {count}" for name, count in run.found.items()) or "; ".join(run.doubts[:1])
        self.ground.say(
            f"{self.result.name}: run {len(self.result.runs)} (seed {run.seed}): {run.verdict or 'broke off'}"
            f"{': ' + what if what else ''}; so far {self.result.rate}"
        )


def hunt_all(
    hunts: Mapping[str, Hunt], ground: HuntingGround, budget: Budget, results: list[HuntResult]
) -> None:
    """Run the hunts one after the other and add their results to the list, also that of an interrupted one.

    A time limit is shared equally.
    """
    ends = time.monotonic() + (budget.minutes or 0.0) * 60
    for number, (name, hunt) in enumerate(hunts.items()):
        now = time.monotonic()
        share = (ends - now) / (len(hunts) - number)
        most = None if budget.minutes is not None else budget.runs_each or hunt.runs
        hunting = Hunting(HuntResult(name, hunt), ground, most, now + share)
        results.append(hunting.result)
        hunting.run()


def _damage(cluster: Cluster, limit_s: float) -> str:
    """Describe why the cluster cannot be used for another run; empty if it can, at once or within the limit.

    On a busy machine the session of a broker may end for a moment.
    """
    last = ""

    def usable() -> bool:
        nonlocal last
        last = why_unusable(cluster)
        return not last

    with suppress(WaitTimeout):
        wait_until(usable, limit_s, "", every_s=1.0)
    return last
