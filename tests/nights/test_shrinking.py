"""Smaller scenarios: every step makes one smaller, minimising ends with what is needed, and its test can be pasted."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import onceproof
from faults.kill import Kill
from faults.slow_link import SlowLink
from faults.transfer_leadership import TransferLeadership
from harness.contracts import Mode, TopicSettings, Verdict
from harness.expectation import Standing
from harness.nights.minimising import Judging, minimum
from harness.nights.pasted_test import expression_of, source_of
from harness.nights.repeats import Repeat, Repeats
from harness.nights.shrinking import size, steps
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario
from harness.schedule import Window
from harness.targets import follower_of, leader_of
from suites.nights.planning import canaries, planned

LARGE = Scenario(
    name="large",
    mode=Mode.AT_LEAST_ONCE,
    topic=TopicSettings(partitions=6),
    producers=ProducerSettings(acks="1", linger_ms=100, compression="zstd", keyed=2, records_per_s=2000),
    consumers=ConsumerSettings(members=4, assignor="range"),
    observed=True,
    schedule=(
        Window(SlowLink(), follower_of(0), 0.5, 4.0),
        Window(Kill(), leader_of(0), 2.0, 3.0),
        Window(TransferLeadership(), leader_of(0), 8.0, 1.0),
    ),
)
EVERY = (LARGE, *canaries(), *planned(3, 6).scenarios)


@pytest.mark.parametrize("scenario", EVERY, ids=lambda each: each.name)
def test_every_step_makes_a_scenario_smaller_and_is_named_once(scenario: Scenario) -> None:
    found = list(steps(scenario))
    assert found
    assert [label for label, smaller in found if size(smaller) >= size(scenario)] == []
    assert len({label for label, _ in found}) == len(found)


@pytest.mark.parametrize("scenario", EVERY, ids=lambda each: each.name)
def test_the_source_of_a_scenario_makes_it_again(scenario: Scenario) -> None:
    text, names = expression_of(scenario)
    made = eval(text, {name: getattr(onceproof, name) for name in names})
    assert made == scenario


def test_the_test_to_paste_runs_the_scenario() -> None:
    seen = []

    class Result:
        verdict = Verdict.HELD

    def execute(scenario: Scenario) -> Result:
        seen.append(scenario)
        return Result()

    scope: dict[str, Callable[..., None]] = {}
    exec(source_of(LARGE, ("lost",)), scope)
    scope["test_at_least_once_shows_no_lost"](execute)
    assert seen == [LARGE]


def runs_of(shows: Callable[[Scenario], bool], tried: list[Scenario]) -> Callable[..., Repeats]:
    """Return a stand-in for a cluster: a scenario shows `lost` exactly if `shows` says so."""

    def runs(scenario: Scenario, times: int, enough: Callable[[Repeats], bool]) -> Repeats:
        rate = Repeats(scenario, ("lost",), ())
        while len(rate.repeats) < times and not enough(rate):
            tried.append(scenario)
            lost = Repeat(Verdict.VIOLATED, {"lost": 3}, Standing.BROKEN)
            one = lost if shows(scenario) else Repeat(Verdict.HELD, {}, Standing.AS_PROMISED)
            rate = Repeats(scenario, rate.wanted, (*rate.repeats, one))
        return rate

    return runs


def needs_kill_and_acks_1(scenario: Scenario) -> bool:
    kills = [window for window in scenario.schedule if isinstance(window.fault, Kill)]
    return bool(kills) and kills[0].hold_s >= 1.5 and scenario.producers.acks == "1"


def test_minimising_keeps_exactly_what_is_needed() -> None:
    tried: list[Scenario] = []
    found = minimum(LARGE, ["lost"], runs_of(needs_kill_and_acks_1, tried), lambda: True, lambda _: None)
    small = found.scenario
    assert found.complete
    assert [str(window.fault) for window in small.schedule] == ["kill"]
    assert small.schedule[0].hold_s == 1.5
    assert small.producers == ProducerSettings(acks="1", keyed=1, keyless=0, records_per_s=100)
    assert (small.consumers, small.topic.partitions, small.observed) == (
        ConsumerSettings(members=1),
        1,
        False,
    )
    assert found.runs == len(tried)
    assert "acks='1'" in found.as_data()["test"]


def test_a_scenario_that_shows_nothing_is_not_minimised() -> None:
    tried: list[Scenario] = []
    found = minimum(LARGE, ["lost"], runs_of(lambda _: False, tried), lambda: True, lambda _: None)
    assert not found.shows
    assert len(tried) == 3


def test_minimising_ends_when_the_time_is_up() -> None:
    tried: list[Scenario] = []
    runs = runs_of(needs_kill_and_acks_1, tried)
    found = minimum(LARGE, ["lost"], runs, lambda: len(tried) < 6, lambda _: None)
    assert not found.complete
    assert len(tried) <= 8
    assert needs_kill_and_acks_1(found.scenario)


@pytest.mark.parametrize(("shown", "runs", "least"), [(3, 3, 1), (2, 3, 2), (1, 3, 5), (1, 10, 10)])
def test_a_rare_anomaly_gets_more_repeats(shown: int, runs: int, least: int) -> None:
    judging = Judging.for_rate(shown, runs)
    assert judging.repeats >= least
    if shown < runs and judging.repeats < 10:
        assert math.pow(1 - shown / runs, judging.repeats) <= 0.1
