"""Make the list of a night from its seed alone, and choose a seed whose list covers what earlier nights have not."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from harness.nights.carried import FoundBefore
from harness.nights.coverage import Combination, combinations, share_of_new
from harness.nights.plan import Plan, expected_s
from harness.scenario import Scenario
from suites.nights.choices import is_promised
from suites.nights.drawing import drawn
from suites.nights.strategies import scenarios as strategy
from suites.scenarios import hazards

_CANDIDATES = 4  # drawn for each place of the list; the one with the largest share of pairs and triples that the list has not yet is taken
_AT_ONCE = 25  # places
_CARRIED_SHARE = 0.25  # of the time of a night, for what earlier nights found
_BLOCK = 20  # scenarios on one release
_COMPARE_S = 20.0  # then the best seed so far is taken


def planned(seed: int, minutes: float) -> Plan:
    """Return the night of this seed: as many scenarios as a quiet machine can run in the time, with a canary among them.

    A longer night of the same seed begins with the same scenarios, up to the place of the canary.
    """
    made: list[Scenario] = []
    covered: Counter[Combination] = Counter()
    left_s = minutes * 60
    while left_s > 0:
        block = drawn(strategy(), f"{seed}-{len(made) // _AT_ONCE}", _CANDIDATES * _AT_ONCE)
        for place in range(_AT_ONCE):
            candidates = block[place * _CANDIDATES : (place + 1) * _CANDIDATES]
            best = max(candidates, key=lambda each: share_of_new(each, covered))
            made.append(best)
            covered.update(combinations(best))
            left_s -= expected_s(best)
            if left_s <= 0:
                break
    chance = random.Random(f"canary {seed}")
    place = chance.randrange(max(1, len(made) // 3))
    made.insert(place, canary(chance.randrange(len(canaries()))))
    named = tuple(
        replace(_named(each, seed, f"{number:03}"), seed=(seed * 10_000 + number) % 2**31)
        for number, each in enumerate(made, 1)
    )
    return Plan(seed, minutes, named, named[place].name)


def canaries() -> list[Scenario]:
    """Return the unsafe scenarios of `prove`: each is provoked by construction, on the usual cluster."""
    usual = hazards.Needs()
    found = [h for h in hazards.found().values() if h.place_in_prove and h.needs == usual and h.unsafe]
    return [h.unsafe for h in sorted(found, key=lambda h: h.place_in_prove) if h.unsafe is not None]


def canary(number: int) -> Scenario:
    return replace(canaries()[number], about={})


def steered_seed(minutes: float, covered: Collection[Combination], seeds: Sequence[int]) -> int:
    """Return the seed whose night covers the most pairs and triples that are not in `covered`; without earlier nights the first one.

    The list still follows from the seed alone, and can be made again without the nights before it.
    """
    if not covered:
        return seeds[0]
    known, until = set(covered), time.monotonic() + _COMPARE_S
    best, most = seeds[0], -1
    for seed in seeds:
        listed = planned(seed, minutes).scenarios
        new = len({each for scenario in listed for each in combinations(scenario)} - known)
        if new > most:
            best, most = seed, new
        if time.monotonic() > until:
            break
    return best


def on_releases(plan: Plan, releases: Sequence[str]) -> Plan:
    """Return the plan with a release of the brokers for each scenario; they change after a block, so that clusters change rarely.

    The order of the releases follows from the seed; each of them has its turn before one comes again.
    """
    if len(releases) < 2:
        return plan
    size = min(_BLOCK, math.ceil(len(plan.scenarios) / len(releases)))
    chance = random.Random(f"kafka {plan.seed}")
    kafka: dict[str, str] = {}
    turns: list[str] = []
    for place in range(0, len(plan.scenarios), size):
        turns = turns or chance.sample(list(releases), len(releases))
        release = turns.pop(0)
        kafka |= {scenario.name: release for scenario in plan.scenarios[place : place + size]}
    return replace(plan, kafka=kafka)


def with_carried(plan: Plan, found: Sequence[FoundBefore]) -> Plan:
    """Return the plan with the findings of earlier nights before its own scenarios, in at most a quarter of its time.

    They keep their settings, faults and seed, get a name of this night, and run on the release on which they were found if this
    night has it. Findings that this version does not promise any more are left out.
    """
    chosen: list[FoundBefore] = []
    left_s = plan.minutes * 60 * _CARRIED_SHARE
    for each in found:
        if is_promised(each.scenario):
            left_s -= expected_s(each.scenario)
            if chosen and left_s < 0:
                break
            chosen.append(each)
    releases = set(plan.kafka.values())
    next_one = plan.kafka.get(plan.scenarios[0].name, "")  # its cluster is used on
    on = [each.kafka if each.kafka in releases else next_one for each in chosen]
    ordered = sorted(zip(chosen, on, strict=True), key=lambda pair: (pair[1] == next_one, pair[1]))
    named = [
        _named(each.scenario, plan.seed, f"again-{number:02}") for number, (each, _) in enumerate(ordered, 1)
    ]
    kafka = {scenario.name: release for scenario, (_, release) in zip(named, ordered, strict=True) if release}
    return replace(
        plan,
        scenarios=(*named, *plan.scenarios),
        carried={scenario.name: each.name for scenario, (each, _) in zip(named, ordered, strict=True)},
        kafka={**kafka, **plan.kafka},
    )


def _named(scenario: Scenario, seed: int, place: str) -> Scenario:
    """Return the scenario with the name of its place; a canary looks like any other by its name."""
    faults = list(dict.fromkeys(str(window.fault.describe()["fault"]) for window in scenario.schedule))
    words = "-".join(faults[:3]) or "none"
    return replace(scenario, name=f"night-{seed}-{place}-{scenario.mode}-{words}")
