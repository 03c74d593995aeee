"""Count the pairs of mode, fault, target, workload and setting that runs exercised, and those in which the fault took effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from harness.scenario import Scenario

Feature = tuple[str, str]  # dimension and value: ("fault", "kill"), ("setting", "acks=all")
Pair = tuple[Feature, Feature]  # sorted

_PRODUCER = (
    "acks",
    "in_flight",
    "linger_ms",
    "batch_bytes",
    "compression",
    "records_per_transaction",
    "aborted_share",
)
_CONSUMER = (
    "members",
    "isolation",
    "group_protocol",
    "assignor",
    "auto_commit",
    "static",
    "session_timeout_ms",
)
_MOST_UNCOVERED = 200


@dataclass(frozen=True)
class Exercised:
    """A scenario that was run: which of its windows bit, and whether the run proved anything."""

    scenario: Scenario
    bitten: Sequence[bool] = ()
    conclusive: bool = True


@dataclass(frozen=True)
class PairCoverage:
    """Counts of runs by pair: those that exercised it, and those in which it took effect."""

    exercised: Counter[Pair] = field(default_factory=Counter)
    bit: Counter[Pair] = field(default_factory=Counter)

    @classmethod
    def of(cls, runs: Iterable[Exercised]) -> PairCoverage:
        exercised: Counter[Pair] = Counter()
        bit: Counter[Pair] = Counter()
        for run in runs:
            exercised.update(pairs(run.scenario))
            bit.update(_bitten(run))
        return cls(exercised, bit)

    def as_data(self, possible: Collection[Pair] = ()) -> dict[str, Any]:
        """Return the counts as JSON values. `possible`: the pairs that can be drawn, to name those that took effect in no run."""
        uncovered = sorted(set(possible) - set(self.bit))
        return {
            "exercised": len(self.exercised),
            "bit": len(self.bit),
            "possible_with_faults": len(possible),
            "uncovered_with_faults": len(uncovered),
            "uncovered": [text(each) for each in uncovered[:_MOST_UNCOVERED]],
            "pairs": {
                text(each): {"exercised": times, "bit": self.bit.get(each, 0)}
                for each, times in sorted(self.exercised.items())
            },
        }


def pair(first: Feature, second: Feature) -> Pair:
    return (first, second) if first <= second else (second, first)


def text(of: Pair) -> str:
    """Return `fault kill x mode exactly_once`."""
    return " x ".join(f"{dimension} {value}" for dimension, value in of)


def pairs(scenario: Scenario) -> set[Pair]:
    """Return all pairs that a run of the scenario exercises."""
    found = _plain(scenario)
    for number in range(len(scenario.schedule)):
        found |= _of_window(scenario, number)
    return found


def share_of_new(scenario: Scenario, covered: Collection[Pair]) -> float:
    """Return the share of the scenario's pairs that are not covered yet: a share, so that many faults are no advantage."""
    found = pairs(scenario)
    return sum(each not in covered for each in found) / len(found)


def settings(scenario: Scenario) -> list[Feature]:
    """Return the settings of clients and of the topic, as features."""
    values: dict[str, Any] = {"partitions": scenario.topic.partitions}
    values |= {name: getattr(scenario.producers, name) for name in _PRODUCER}
    values |= {name: getattr(scenario.consumers, name) for name in _CONSUMER}
    return [("setting", f"{name}={'default' if value is None else value}") for name, value in values.items()]


def _plain(scenario: Scenario) -> set[Pair]:
    """Return the pairs without a fault. Two settings do not make a pair: there would be too many."""
    found = {pair(*_of_run(scenario))}
    return found | {pair(one, setting) for one in _of_run(scenario) for setting in settings(scenario)}


def _of_run(scenario: Scenario) -> tuple[Feature, Feature]:
    return ("mode", str(scenario.mode)), ("workload", scenario.workload)


def _of_window(scenario: Scenario, number: int) -> set[Pair]:
    window = scenario.schedule[number]
    fault, target = ("fault", str(window.fault.describe()["fault"])), ("target", str(window.on))
    beside = [*_of_run(scenario), *settings(scenario)]
    found = {pair(*each) for each in combinations([fault, target], 2)}
    return found | {pair(one, other) for one in (fault, target) for other in beside}


def _bitten(run: Exercised) -> set[Pair]:
    found = _plain(run.scenario) if run.conclusive else set()
    for number, bit in enumerate(run.bitten[: len(run.scenario.schedule)]):
        if bit:
            found |= _of_window(run.scenario, number)
    return found
