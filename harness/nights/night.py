"""One night: its scenarios in order until its time is up, with a journal; findings are replayed and minimised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness.errors import OnceproofError
from harness.ledger.rundir import RunDir
from harness.nights.journal import NightJournal, NightState
from harness.nights.minimising import minimised
from harness.nights.repeats import Repeat, judged, repeated
from harness.nights.resources import development
from harness.nights.shared_cluster import Execution, SharedCluster
from harness.scenario import Scenario
from harness.trends.recorder import SessionRecorder
from reports.words import plural

REPLAYS = 2  # of a finding, at once
_FOR_FINDINGS = 0.3  # of the time of a night that has a finding stays for minimising
_GUESS_S = 45.0  # a run, before one was measured
_LEAST_TO_MINIMISE = 4  # runs


@dataclass
class Night:
    """Runs the plan of a journal on a shared cluster, and records every event in the journal."""

    journal: NightJournal
    cluster: SharedCluster
    note: Callable[[str], None]
    _pending: list[Execution] = field(default_factory=list)

    @property
    def state(self) -> NightState:
        return self.journal.state

    def go(self) -> None:
        """Run the scenarios that the journal does not contain yet, until the time or the list is used up."""
        self._judge_left()
        while (scenario := self._next()) is not None:
            self._run(scenario)
            self._harvest(wait=False)
        self._harvest(wait=True)
        with self.cluster.trends.as_kind("replay"):
            self._replay_findings()
        with self.cluster.trends.as_kind("minimise"):
            self._minimise_findings()
        self.cluster.close("the end of the night")
        self.journal.write("ended")

    def progress(self) -> str:
        """Return one line: what was run and found, and the time that is left."""
        state = self.state
        canary = "found" if state.canary_found else "not found yet"
        return (
            f"{len(state.done)} of {len(state.plan.scenarios)} scenarios, {plural(len(state.findings), 'finding')}, "
            f"{len(state.inconclusive)} inconclusive, canary {canary}, {max(0.0, self._left_s()) / 60:.1f} min left"
        )

    # --- which one is next ---

    def _left_s(self) -> float:
        return self.state.plan.minutes * 60 - self.journal.used_s

    def _run_s(self) -> float:
        """Return the mean duration of a run of this night."""
        seconds = self.state.seconds.values()
        return sum(seconds) / len(seconds) if seconds else _GUESS_S

    def _next(self) -> Scenario | None:
        """Return the next scenario. The canary runs while there is time for it, whatever its place."""
        waiting = [each for each in self.state.plan.scenarios if each.name not in self.state.done]
        canary = next((each for each in waiting if each.name == self.state.plan.canary), None)
        left_s, run_s = self._left_s(), self._run_s()
        if canary is not None and left_s < 2.5 * run_s:
            return canary
        if self.state.findings:
            left_s -= _FOR_FINDINGS * self.state.plan.minutes * 60
        return waiting[0] if waiting and left_s >= run_s else None

    # --- runs ---

    def _run(self, scenario: Scenario) -> None:
        self.journal.write("began", scenario=scenario.name)
        self._use_release_of(scenario.name)
        execution = self.cluster.run(scenario)
        name, run = scenario.name, execution.run
        if execution.skipped:
            self.note(f"skipped {name}: {execution.skipped}")
            self.journal.write("skipped", scenario=name, reason=execution.skipped)
        elif execution.trouble:
            self._trouble(name, execution.trouble, run)
        else:
            self.journal.write(
                "executed",
                scenario=name,
                run_dir=str(run.path) if run else "",
                seconds=execution.seconds,
                kafka=execution.kafka,
            )
            self._pending.append(execution)

    def _use_release_of(self, name: str) -> None:
        self.cluster.use(self.state.plan.kafka.get(name, ""))

    def _trouble(self, name: str, text: str, run: RunDir | None) -> None:
        self.note(f"{name}: {text}")
        self.journal.write("trouble", scenario=name, text=text, run_dir=str(run.path) if run else "")

    def _harvest(self, wait: bool) -> None:
        """Record the verdicts that are ready; with `wait`, wait for all of them."""
        ready = [each for each in self._pending if wait or (each.future is not None and each.future.done())]
        self._pending = [each for each in self._pending if each not in ready]
        for execution in ready:
            self._judged(execution.scenario, judged(execution))

    def _judged(self, scenario: Scenario, repeat: Repeat) -> None:
        if repeat.trouble.startswith("not reconciled"):
            self._trouble(scenario.name, repeat.trouble, repeat.run)
            return
        self.note(f"{scenario.name}: {repeat.verdict}, {repeat.standing}: {repeat.text}")
        self.journal.write(
            "judged",
            scenario=scenario.name,
            verdict=repeat.verdict,
            standing=repeat.standing,
            anomalies=dict(repeat.anomalies),
            bitten=list(repeat.bitten),
            run_dir=str(repeat.run.path) if repeat.run else "",
        )

    def _judge_left(self) -> None:
        """Reconcile the runs that were executed and not judged when the program was killed, from their files."""
        by_name = {each.name: each for each in self.state.plan.scenarios}
        for name, path in dict(self.state.to_judge).items():
            self._judged(by_name[name], judged_from_disk(RunDir(Path(path)), self.cluster.trends))

    # --- findings ---

    def _replay_findings(self) -> None:
        for name, scenario, wanted in self._findings():
            if name in self.state.replayed or self._left_s() < self._run_s():
                continue
            self._use_release_of(name)
            rate = repeated(
                self.cluster, scenario, REPLAYS, wanted, enough=lambda _: self._left_s() < self._run_s()
            )
            self.note(f"{name}: replayed: {rate.text}")
            self.journal.write("replayed", **rate.as_data())

    def _minimise_findings(self) -> None:
        for name, scenario, wanted in self._findings():
            if name in self.state.minimised or self._left_s() < _LEAST_TO_MINIMISE * self._run_s():
                continue
            share_s = self._left_s() / max(1, len(self.state.findings) - len(self.state.minimised))
            in_time = partial(self._before, self.journal.used_s + share_s)
            self._use_release_of(name)
            smallest = minimised(self.cluster, scenario, wanted, in_time, self.note)
            self.journal.write("minimised", **{**smallest.as_data(), "scenario": name})

    def _before(self, used_s: float) -> bool:
        return self.journal.used_s < used_s

    def _findings(self) -> list[tuple[str, Scenario, tuple[str, ...]]]:
        by_name = {each.name: each for each in self.state.plan.scenarios}
        return [
            (name, by_name[name], tuple(self.state.judged[name]["anomalies"])) for name in self.state.findings
        ]


def judged_from_disk(run: RunDir, trends: SessionRecorder) -> Repeat:
    """Reconcile and judge an executed run from its files; its cluster is gone."""
    from harness.assessment import assess
    from harness.reconcile.spark.session import spark

    try:
        reconciled, judgement = assess(run, spark())
    except OnceproofError as error:
        return Repeat.unproven(run, f"not reconciled: {error}")
    trends.add(run, reconciled, judgement)
    return Repeat.of(run, reconciled, judgement)


def outcome(state: NightState) -> dict[str, Any]:
    """Return what --json says about the findings of a night."""
    return {
        "canary": {"scenario": state.plan.canary, "found": state.canary_found},
        "carried": [{"scenario": name, "found_as": first} for name, first in state.plan.carried.items()],
        "findings": [
            {
                "scenario": name,
                "anomalies": dict(state.judged[name]["anomalies"]),
                "run_dir": state.judged[name]["run_dir"],
                "replayed": _of(state.replayed.get(name)),
                "minimised": _of(state.minimised.get(name)),
            }
            for name in state.findings
        ],
        "inconclusive": state.inconclusive,
        "skipped": [{"scenario": name, "reason": why} for name, why in state.skipped.items()],
        "troubles": [{"scenario": name, "text": text} for name, text in state.troubles.items()],
        "cut": state.cut,
        "not_reached": [each.name for each in state.plan.scenarios if each.name not in state.done],
        "leaks": state.leaks,
        "clusters": state.clusters,
        "resources": development(state.resources),
        "reduced": list(dict.fromkeys(state.reduced)),
    }


def _of(event: Any) -> dict[str, Any] | None:
    if event is None:
        return None
    return {name: value for name, value in event.items() if name not in ("event", "used_s", "scenario")}
