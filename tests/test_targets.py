"""Targets pick nodes by role and change nothing."""

from __future__ import annotations

import json

import pytest

from harness.errors import UsageError
from harness.targets import (
    Target,
    active_controller,
    consumer,
    every_broker,
    everyone,
    follower_of,
    group_coordinator,
    laggard_of,
    leader_of,
    majority,
    minority,
    other_controllers,
    producer,
    replicas_of,
    some_brokers,
    transaction_coordinator,
    worker,
)
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
        (everyone(), "everyone", ["broker-1", "broker-2", "broker-3"]),
        (replicas_of(), "replicas", ["broker-2", "broker-3", "broker-1"]),
        (other_controllers(), "controllers", ["broker-1", "broker-2"]),
        (producer(), "producer-1", ["producer-1"]),
        (worker("producer-1"), "worker-producer-1", ["producer-1"]),
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


def test_picks_no_node_without_a_leader() -> None:
    arena = make_arena()
    for broker in arena.cluster.brokers:
        broker.alive = False
    assert leader_of().pick(arena) == []
    assert follower_of().pick(arena) == []


def test_an_unknown_partition_is_an_error_that_lists_the_partitions() -> None:
    with pytest.raises(UsageError, match="no partition 7; its partitions: 0, 1"):
        leader_of(7).pick(make_arena())


def test_a_laggard_is_a_replica_out_of_the_in_sync_set() -> None:
    arena = make_arena()
    assert laggard_of().pick(arena) == []
    arena.cluster.brokers[2].alive = False
    assert [node.name for node in laggard_of().pick(arena)] == ["broker-3"]


def test_coordinators_are_asked_for_by_name() -> None:
    arena = make_arena()
    assert group_coordinator().pick(arena) == []
    arena.cluster.coordinators[arena.group, False] = "broker-3"
    arena.cluster.coordinators[f"{arena.topic}-producer-2", True] = "broker-1"
    assert [node.name for node in group_coordinator().pick(arena)] == ["broker-3"]
    assert [node.name for node in transaction_coordinator(2).pick(arena)] == ["broker-1"]
    assert transaction_coordinator(1).pick(arena) == []


def test_minority_and_majority_share_the_brokers() -> None:
    arena = make_arena()
    for seed in range(20):
        few, many = minority(seed).pick(arena), majority(seed).pick(arena)
        assert (len(few), len(many)) == (1, 2)
        assert few == minority(seed).pick(arena), "the same for the same seed"
    assert {minority(seed).pick(arena)[0].name for seed in range(20)} == {"broker-1", "broker-2", "broker-3"}
    assert len(some_brokers(5, seed=1).pick(arena)) == 3


def test_an_unknown_worker_is_an_error_that_lists_the_workers() -> None:
    with pytest.raises(UsageError, match="no worker consumer-1; the run has: producer-1"):
        consumer().pick(make_arena())


def test_an_unknown_role_is_named() -> None:
    with pytest.raises(UsageError, match="unknown target 'boss'"):
        Target("boss")


@pytest.mark.parametrize(
    "target", [leader_of(2), everyone(), some_brokers(2, seed=7), transaction_coordinator(3)], ids=str
)
def test_a_target_is_restored_from_its_description(target: Target) -> None:
    assert Target.of(json.loads(json.dumps(target.describe()))) == target
