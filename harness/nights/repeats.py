"""Repeats of one scenario, with its seed, and the rate at which they show an anomaly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.contracts import Verdict
from harness.errors import OnceproofError
from harness.execute import BrokenRun
from harness.expectation import Standing
from harness.ledger.rundir import RunDir
from harness.nights.shared_cluster import Execution, SharedCluster
from harness.scenario import Scenario
from harness.statistics.rates import Rate
from harness.verdict import Judgement

JUDGED_WITHIN_S = 900.0  # reconciling one run takes seconds; other programs may use the processors


@dataclass(frozen=True)
class Repeat:
    """One run of the scenario: its verdict and the forbidden anomalies that it shows."""

    verdict: Verdict
    anomalies: Mapping[str, int] = field(default_factory=dict)
    standing: Standing = Standing.UNPROVEN
    run: RunDir | None = None
    trouble: str = ""
    bitten: tuple[bool, ...] = ()  # of each window of the schedule

    @classmethod
    def of(cls, run: RunDir, reconciled: Mapping[str, Any], judgement: Judgement) -> Repeat:
        windows = sorted(reconciled["coverage"]["windows"], key=lambda each: int(each["window"]))
        unsure = judgement.verdict is Verdict.INCONCLUSIVE
        return cls(
            judgement.verdict,
            {each.anomaly: each.count for each in judgement.violations},
            judgement.standing,
            run,
            "; ".join(judgement.inconclusive) if unsure else "",
            tuple(bool(window["bit"]) for window in windows),
        )

    @classmethod
    def unproven(cls, run: RunDir | None, why: str) -> Repeat:
        return cls(Verdict.INCONCLUSIVE, run=run, trouble=why)

    @property
    def text(self) -> str:
        """The anomalies with their counts, or why the run proves nothing."""
        return (
            ", ".join(f"{name} {count}" for name, count in self.anomalies.items())
            or self.trouble
            or "nothing forbidden"
        )

    def shows(self, wanted: Collection[str]) -> bool:
        """Return True if the run is VIOLATED by one of these anomalies, or by any if `wanted` is empty."""
        return self.verdict is Verdict.VIOLATED and (not wanted or bool(set(wanted) & set(self.anomalies)))


@dataclass(frozen=True)
class Repeats:
    """The repeats of one scenario. A run that proves nothing counts neither for nor against."""

    scenario: Scenario
    wanted: tuple[str, ...]
    repeats: tuple[Repeat, ...]

    def count(self, verdict: Verdict) -> int:
        return sum(each.verdict is verdict for each in self.repeats)

    @property
    def shown(self) -> int:
        return sum(each.shows(self.wanted) for each in self.repeats)

    @property
    def conclusive(self) -> int:
        return len(self.repeats) - self.count(Verdict.INCONCLUSIVE)

    @property
    def text(self) -> str:
        what = " or ".join(self.wanted) or "a violation"
        inconclusive = self.count(Verdict.INCONCLUSIVE)
        also = f"; {inconclusive} more proved nothing" if inconclusive else ""
        return f"{what}: {Rate(self.shown, self.conclusive)}{also}"

    def as_data(self) -> dict[str, Any]:
        rate = Rate(self.shown, self.conclusive)
        anomalies = Counter(name for each in self.repeats for name in each.anomalies)
        return {
            "scenario": self.scenario.name,
            "seed": self.scenario.seed,
            "times": len(self.repeats),
            "wanted": list(self.wanted),
            "shown": self.shown,
            "conclusive": rate.runs,
            "inconclusive": self.count(Verdict.INCONCLUSIVE),
            "rate": rate.share,
            "interval": list(rate.interval),
            "anomalies": dict(sorted(anomalies.items())),
            "run_dirs": [str(each.run.path) for each in self.repeats if each.run is not None],
        }


def judged(execution: Execution) -> Repeat:
    """Wait for the verdict of a run. A run that was not executed or not reconciled proves nothing."""
    trouble = execution.skipped or execution.trouble
    if execution.future is not None:
        try:
            result = execution.future.result(JUDGED_WITHIN_S)
        except (OnceproofError, BrokenRun, TimeoutError) as error:
            trouble = f"not reconciled: {error}"
        else:
            return Repeat.of(result.run, result.reconciled, result.judgement)
    return Repeat.unproven(execution.run, trouble)


def repeated(
    cluster: SharedCluster,
    scenario: Scenario,
    times: int,
    wanted: Sequence[str] = (),
    enough: Callable[[Repeats], bool] = lambda rate: False,
) -> Repeats:
    """Run the scenario up to `times` times; stop as soon as `enough` returns True for the repeats so far."""
    rate = Repeats(scenario, tuple(wanted), ())
    while len(rate.repeats) < times and not enough(rate):
        one = judged(cluster.run(scenario))
        cluster.say(scenario.name, f"{one.verdict}: {one.text}")
        rate = Repeats(scenario, rate.wanted, (*rate.repeats, one))
    return rate
