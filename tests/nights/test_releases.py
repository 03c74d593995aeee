"""A night on several releases of the brokers: blocks of scenarios, and what an old release does not support."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest

from harness.nights.shared_cluster import why_too_old
from harness.scenario import ConsumerSettings
from suites.nights.planning import on_releases, planned
from tests.short_run import HONEST

PLAN = planned(11, 25)
THREE = ["4.3.1", "3.9.2", "3.7.2"]


def blocks(plan_releases: list[str]) -> list[tuple[str, int]]:
    return [(release, len(list(group))) for release, group in groupby(plan_releases)]


def test_every_release_has_its_block() -> None:
    plan = on_releases(PLAN, THREE)
    found = blocks([plan.kafka[each.name] for each in plan.scenarios])
    assert sorted(release for release, _ in found) == sorted(THREE)
    assert max(size for _, size in found) <= 20
    assert plan.scenarios == PLAN.scenarios


def test_in_a_long_night_the_releases_take_turns() -> None:
    many = replace(PLAN, scenarios=tuple(replace(HONEST, name=f"s{number}") for number in range(170)))
    order = list(on_releases(many, THREE).kafka.values())
    turns = [order[place] for place in range(0, 170, 20)]
    assert all(sorted(turns[place : place + 3]) == sorted(THREE) for place in (0, 3, 6))


def test_the_order_follows_from_the_seed() -> None:
    orders = {seed: tuple(on_releases(replace(PLAN, seed=seed), THREE).kafka.values()) for seed in range(20)}
    assert orders[3] == tuple(on_releases(replace(PLAN, seed=3), THREE).kafka.values())
    assert len(set(orders.values())) > 2


def test_one_release_is_no_dimension() -> None:
    assert on_releases(PLAN, []) == on_releases(PLAN, ["3.9.2"]) == PLAN


@pytest.mark.parametrize(
    ("protocol", "release", "old"),
    [
        ("consumer", "3.9.2", True),
        ("consumer", "4.0.0", False),
        ("consumer", "unknown", False),
        ("classic", "3.9.2", False),
    ],
)
def test_old_releases_lack_the_consumer_protocol(protocol: str, release: str, old: bool) -> None:
    scenario = replace(HONEST, consumers=ConsumerSettings(group_protocol=protocol))
    assert bool(why_too_old(scenario, release)) is old
