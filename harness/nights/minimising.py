"""Minimise a scenario: keep the steps after which it still shows its anomaly, judged by repeats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.contracts import Verdict
from harness.nights.pasted_test import source_of
from harness.nights.repeats import Repeats, repeated
from harness.nights.shared_cluster import SharedCluster
from harness.nights.shrinking import size, steps
from harness.scenario import Scenario

FIRST_REPEATS = 3
_MISSED = 0.1  # a step that keeps the rate is refused by chance in at most so many cases
_LEAST_REPEATS, _MOST_REPEATS = 2, 10

Runs = Callable[[Scenario, int, Callable[[Repeats], bool]], Repeats]


@dataclass(frozen=True)
class Judging:
    """A step is accepted after one run with the anomaly, and refused after so many conclusive runs without it."""

    repeats: int

    @classmethod
    def for_rate(cls, shown: int, runs: int) -> Judging:
        """Choose by the rate of the whole scenario: a rare anomaly needs more repeats."""
        rate = shown / runs
        if rate >= 1 - _MISSED:
            return cls(_LEAST_REPEATS)
        return cls(min(_MOST_REPEATS, math.ceil(math.log(_MISSED) / math.log(1 - rate))))

    def decided(self, rate: Repeats) -> bool:
        return rate.shown > 0 or rate.conclusive >= self.repeats


@dataclass
class Minimum:
    """The smallest scenario found so far, with its rate, and what was tried."""

    scenario: Scenario
    wanted: tuple[str, ...]
    rate: Repeats
    first: Repeats
    taken: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    complete: bool = False  # no step was left to try
    runs: int = 0

    @property
    def shows(self) -> bool:
        return self.first.shown > 0

    def as_data(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario.name,
            "wanted": list(self.wanted),
            "shows": self.shows,
            "faults": len(self.scenario.schedule),
            "first_rate": self.first.as_data(),
            "rate": self.rate.as_data(),
            "taken": self.taken,
            "refused": self.refused,
            "complete": self.complete,
            "runs": self.runs,
            "smallest": self.scenario.describe(),
            "test": source_of(self.scenario, self.wanted),
        }


def minimised(
    cluster: SharedCluster,
    scenario: Scenario,
    wanted: Sequence[str],
    in_time: Callable[[], bool],
    note: Callable[[str], None],
) -> Minimum:
    """Minimise on a cluster while there is time."""
    return minimum(
        scenario,
        wanted,
        lambda each, times, enough: repeated(
            cluster, each, times, wanted, lambda r: enough(r) or not in_time()
        ),
        in_time,
        note,
    )


def minimum(
    scenario: Scenario,
    wanted: Sequence[str],
    runs: Runs,
    in_time: Callable[[], bool],
    note: Callable[[str], None],
) -> Minimum:
    """Try steps until none keeps the anomaly or the time is up. `runs` repeats a scenario."""
    plain = _as_promise(scenario)
    first = runs(plain, FIRST_REPEATS, lambda _: False)
    found = Minimum(plain, tuple(wanted), first, first, runs=len(first.repeats))
    note(f"as it is: {first.text}")
    if not found.shows:
        return found
    judging = Judging.for_rate(first.shown, max(1, first.conclusive))
    refused: set[str] = set()  # steps from scenarios that were larger are not tried again
    progress = True
    while progress:
        progress = False
        for label, smaller in steps(found.scenario):
            if not in_time():
                return found
            if label in refused or size(smaller) >= size(found.scenario):
                continue
            rate = runs(smaller, judging.repeats * 2, judging.decided)
            found.runs += len(rate.repeats)
            if rate.shown:
                note(f"smaller: {label}: {rate.text}")
                found.scenario, found.rate, progress = smaller, rate, True
                found.taken.append(label)
                break
            note(f"needed: {label}: {rate.text}")
            refused.add(label)
            found.refused.append(label)
    found.complete = True
    return found


def smaller_name(name: str) -> str:
    """Return the name of the scenarios that minimising makes of one."""
    return f"{name[:140]}-smaller"


def _as_promise(scenario: Scenario) -> Scenario:
    """Return the scenario as one that has to be HELD: required anomalies may depend on faults that a step removes."""
    return replace(
        scenario,
        name=smaller_name(scenario.name),
        expected=Verdict.HELD,
        requires={},
        tolerates=(),
        control=False,
        about={},
        hazard="",
    )
