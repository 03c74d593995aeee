"""Findings of the last nights: their scenarios run first in the next one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from harness.nights.journal import NightState
from harness.scenario import Scenario

LAST_NIGHTS = 7


@dataclass(frozen=True)
class FoundBefore:
    """A scenario that showed what its mode forbids."""

    scenario: Scenario
    name: str  # in the night that found it first
    kafka: str = ""  # the release that it was found on, if known


def found_lately(nights: Iterable[NightState]) -> list[FoundBefore]:
    """Return the findings of the newest nights, each scenario once. `nights`: the newest one first."""
    known: list[Scenario] = []
    found: list[FoundBefore] = []
    for night in islice(nights, LAST_NIGHTS):
        for each in _findings(night):
            same = replace(each.scenario, name="same")  # a carried scenario has another name in each night
            if same not in known:
                known.append(same)
                found.append(each)
    return found


def _findings(night: NightState) -> Iterator[FoundBefore]:
    by_name = {each.name: each for each in night.plan.scenarios}
    for name in night.findings:
        first = night.plan.carried.get(name, name)
        yield FoundBefore(by_name[name], first, night.kafka.get(name, ""))
