"""Count the pairs and triples of mode, fault, target, workload and setting that runs exercised, and those in which the fault took
effect.

Triples are mode x fault x target, mode x fault x workload and fault x target x workload: what is broken, where, and who has to
survive it. Two settings do not make a pair: there would be too many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from harness.scenario import Scenario

Feature = tuple[str, str]  # dimension and value: ("fault", "kill"), ("setting", "acks=all")
Combination = tuple[Feature, ...]  # sorted: a pair or a triple

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
    """A scenario that was run: which of its windows bit, whether the run proved anything, and on which release of the brokers."""

    scenario: Scenario
    bitten: Sequence[bool] = ()
    conclusive: bool = True
    kafka: str = ""  # not known of an existing cluster


@dataclass(frozen=True)
class PairCoverage:
    """Counts of runs by pair: those that exercised it, and those in which it took effect."""

    exercised: Counter[Combination] = field(default_factory=Counter)
    bit: Counter[Combination] = field(default_factory=Counter)
    size: ClassVar[int] = 2
    name: ClassVar[str] = "pairs"

    @classmethod
    def of(cls, runs: Iterable[Exercised]) -> Self:
        exercised: Counter[Combination] = Counter()
        bit: Counter[Combination] = Counter()
        for run in runs:
            exercised.update(cls._among(combinations(run.scenario, run.kafka)))
            bit.update(cls._among(_bitten(run)))
        return cls(exercised, bit)

    @classmethod
    def _among(cls, every: Collection[Combination]) -> set[Combination]:
        return {each for each in every if len(each) == cls.size}

    def as_data(self, possible: Collection[Combination] = ()) -> dict[str, Any]:
        """Return the counts as JSON values. `possible`: what can be drawn, to name what no run has bitten."""
        drawable = self._among(possible)
        uncovered = sorted(drawable - set(self.bit))
        return {
            "exercised": len(self.exercised),
            "bit": len(self.bit),
            "possible_with_faults": len(drawable),
            "uncovered_with_faults": len(uncovered),
            "uncovered": [text(each) for each in uncovered[:_MOST_UNCOVERED]],
            self.name: {
                text(each): {"exercised": times, "bit": self.bit.get(each, 0)}
                for each, times in sorted(self.exercised.items())
            },
        }


@dataclass(frozen=True)
class TripleCoverage(PairCoverage):
    """The same of triples."""

    size: ClassVar[int] = 3
    name: ClassVar[str] = "triples"


def described(runs: Iterable[Exercised], possible: Collection[Combination] = ()) -> dict[str, Any]:
    """Return the coverage of runs as JSON values: pairs, and under `triples` the same of triples."""
    known = list(runs)
    triples = TripleCoverage.of(known).as_data(possible)
    return {**PairCoverage.of(known).as_data(possible), "triples": triples}


def covered(runs: Iterable[Exercised]) -> set[Combination]:
    """Return the pairs and triples that took effect in these runs."""
    return {each for run in runs for each in _bitten(run)}


def combined(*features: Feature) -> Combination:
    """Return the pair or triple of these features, in its one order."""
    return tuple(sorted(features))


def text(of: Combination) -> str:
    """Return `fault kill x mode exactly_once`."""
    return " x ".join(f"{dimension} {value}" for dimension, value in of)


def combinations(scenario: Scenario, kafka: str = "") -> set[Combination]:
    """Return all pairs and triples that a run of the scenario exercises."""
    found = _plain(scenario, kafka)
    for number in range(len(scenario.schedule)):
        found |= _of_window(scenario, number, kafka)
    return found


def with_fault(mode: str, workload: str, fault: str, target: str) -> set[Combination]:
    """Return the pairs and triples of a fault that do not depend on settings."""
    run: tuple[Feature, Feature] = (("mode", mode), ("workload", workload))
    broken: tuple[Feature, Feature] = (("fault", fault), ("target", target))
    found = {combined(*broken), *(combined(one, other) for one in broken for other in run)}
    return found | {combined(*broken, each) for each in run} | {combined(broken[0], *run)}


def share_of_new(scenario: Scenario, covered: Collection[Combination]) -> float:
    """Return the share of the scenario's pairs and triples that are not covered yet: a share, so that many faults are no advantage."""
    found = combinations(scenario)
    return sum(each not in covered for each in found) / len(found)


def settings(scenario: Scenario) -> list[Feature]:
    """Return the settings of clients and of the topic, as features."""
    values: dict[str, Any] = {"partitions": scenario.topic.partitions}
    values |= {name: getattr(scenario.producers, name) for name in _PRODUCER}
    values |= {name: getattr(scenario.consumers, name) for name in _CONSUMER}
    return [("setting", f"{name}={'default' if value is None else value}") for name, value in values.items()]


def _plain(scenario: Scenario, kafka: str) -> set[Combination]:
    """Return the pairs without a fault."""
    mode, workload = ("mode", str(scenario.mode)), ("workload", scenario.workload)
    beside = [*settings(scenario), *_release(kafka)]
    return {combined(mode, workload)} | {combined(one, other) for one in (mode, workload) for other in beside}


def _of_window(scenario: Scenario, number: int, kafka: str) -> set[Combination]:
    window = scenario.schedule[number]
    fault, target = str(window.fault.describe()["fault"]), str(window.on)
    beside = [*settings(scenario), *_release(kafka)]
    found = with_fault(str(scenario.mode), scenario.workload, fault, target)
    return found | {
        combined(one, other) for one in (("fault", fault), ("target", target)) for other in beside
    }


def _release(kafka: str) -> list[Feature]:
    return [("kafka", kafka)] if kafka else []


def _bitten(run: Exercised) -> set[Combination]:
    found = _plain(run.scenario, run.kafka) if run.conclusive else set()
    for number, bit in enumerate(run.bitten[: len(run.scenario.schedule)]):
        if bit:
            found |= _of_window(run.scenario, number, run.kafka)
    return found
