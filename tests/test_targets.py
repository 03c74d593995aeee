"""Targets pick by role and only read."""

from __future__ import annotations

import json

import pytest

from harness.errors import UsageError
from harness.targets import Target, active_controller, every_broker, follower_of, leader_of
from tests.fake_arena import make_arena


@pytest.mark.parametrize(
    ("target", "word", "picked"),
    [
        (leader_of(), "leader", ["broker-2"]),
        (leader_of(1), "leader-1", ["broker-1"]),
        (follower_of(), "follower", ["broker-3"]),
        (follower_of(1), "follower-1", ["broker-2"]),
        (active_controller(), "controller", ["broker-3"]),
        (every_broker(), "brokers", ["broker-1", "broker-2", "broker-3"]),
    ],
)
def test_picks_by_role(target: Target, word: str, picked: list[str]) -> None:
    arena = make_arena()
    assert [node.name for node in target.pick(arena)] == picked
    assert str(target) == word
    assert json.loads(json.dumps(target.describe()))["target"] == word.split("-")[0]
    assert all(not node.calls for node in arena.cluster.brokers), "a target changes nothing"


def test_follows_the_role_when_it_moves() -> None:
    arena = make_arena()
    arena.cluster.brokers[1].alive = False
    assert [node.name for node in leader_of().pick(arena)] == ["broker-3"]
    assert [node.name for node in follower_of().pick(arena)] == ["broker-1"]


def test_picks_nobody_when_nobody_leads() -> None:
    arena = make_arena()
    for broker in arena.cluster.brokers:
        broker.alive = False
    assert leader_of().pick(arena) == []
    assert follower_of().pick(arena) == []


def test_an_unknown_partition_is_named_with_those_that_exist() -> None:
    with pytest.raises(UsageError, match="no partition 7; there are: 0, 1"):
        leader_of(7).pick(make_arena())
