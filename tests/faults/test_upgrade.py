"""A rolling upgrade on nodes in memory: its order, the features it raises, and when it does not bite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from faults.rolling_upgrade import RollingUpgrade, newest_for_all
from harness.contracts import Node, PartitionState, Upgradable
from harness.errors import FaultError, UsageError
from harness.kafka.protocol import features as protocol_features
from harness.kafka.protocol.features import METADATA_VERSION, Features
from tests.fake_arena import FakeArena, FakeCluster, make_arena
from tests.faults.process_nodes import ProcessNode

OLD, NEW = "3.9.2", "4.3.1"
SUPPORTED = {
    OLD: {METADATA_VERSION: (1, 21), "kraft.version": (0, 1)},
    NEW: {METADATA_VERSION: (7, 30), "kraft.version": (0, 1), "transaction.version": (0, 2)},
}


@dataclass
class VersionNode(ProcessNode):
    runs: str = OLD
    order: list[str] = field(default_factory=list)  # shared by all

    def upgrade(self, version: str, limit_s: float = 60.0) -> int:
        code = self.shut_down(limit_s)
        self.order.append(self.name)
        self.runs = self.runs if self.stubborn else version
        self.restart()
        return code

    def version(self) -> str:
        return self.runs

    def features(self) -> Mapping[str, tuple[int, int]]:
        return SUPPORTED[self.runs]


@dataclass
class VersionCluster(FakeCluster):
    """Leaders move with each stop: the epoch is the number of nodes stopped so far."""

    levels: dict[str, int] = field(default_factory=lambda: {METADATA_VERSION: 21})
    still: bool = False  # leaders never move

    def partitions(self, topic: str) -> Sequence[PartitionState]:
        stops = 0 if self.still else sum(node.calls.count("shut_down") for node in self.brokers)
        states = super().partitions(topic)
        return [PartitionState(s.topic, s.partition, s.leader, stops, s.replicas, s.in_sync) for s in states]


@pytest.fixture
def upgrading(monkeypatch: pytest.MonkeyPatch) -> tuple[FakeArena, list[VersionNode]]:
    """Three nodes, the active controller the last of them; features are raised in memory."""
    plain, order = make_arena().cluster, list[str]()
    nodes = [VersionNode(node.name, node.peers, order=order) for node in plain.brokers]
    cluster = VersionCluster(list(nodes), plain.replicas)

    def raise_features(_at: object, levels: Mapping[str, int], _limit_s: float) -> None:
        cluster.levels |= levels

    monkeypatch.setattr(protocol_features, "features", lambda *_: Features({}, dict(cluster.levels), 1))
    monkeypatch.setattr(protocol_features, "raise_features", raise_features)
    return FakeArena(cluster), nodes


def test_controllers_are_upgraded_first_and_the_active_one_last_of_them(
    upgrading: tuple[FakeArena, list[VersionNode]], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena, nodes = upgrading
    monkeypatch.setattr(VersionCluster, "controllers", lambda self: ["broker-2", "broker-3"])
    with RollingUpgrade(NEW).hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert nodes[0].order == ["broker-2", "broker-3", "broker-1"]
        assert bite.measured["upgraded"] == 3
        assert (bite.measured["metadata_version_before"], bite.measured["metadata_version_after"]) == (21, 30)
        assert bite.measured["elections"] == 6, "two partitions, three stops"
        assert "transaction.version=2" in bite.proof
        assert "kraft.version" not in bite.proof, "an upgrade leaves it alone"
    assert RollingUpgrade(NEW).healed(arena, nodes).healed


def test_without_features_the_level_stays(upgrading: tuple[FakeArena, list[VersionNode]]) -> None:
    arena, nodes = upgrading
    with RollingUpgrade(NEW, features=False).hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert bite.measured["metadata_version_after"] == 21


def test_a_node_with_the_old_version_prevents_bite_and_healing(
    upgrading: tuple[FakeArena, list[VersionNode]],
) -> None:
    arena, nodes = upgrading
    nodes[1].stubborn = True
    with RollingUpgrade(NEW).hold(arena, nodes) as bite:
        assert not bite.bit
        assert bite.proof.startswith("broker-2 3.9.2 instead of 4.3.1")
    assert "broker-2 runs 3.9.2" in RollingUpgrade(NEW).healed(arena, nodes).proof


def test_an_upgrade_that_changes_nothing_does_not_bite(
    upgrading: tuple[FakeArena, list[VersionNode]],
) -> None:
    arena, nodes = upgrading
    with RollingUpgrade(OLD).hold(arena, nodes) as same:
        assert not same.bit, "version and level are the same as before"
    assert isinstance(arena.cluster, VersionCluster)
    arena.cluster.still = True
    with RollingUpgrade(NEW).hold(arena, nodes) as still:
        assert not still.bit, "no leader moved"


def test_a_roll_ends_where_a_node_does_not_stop(upgrading: tuple[FakeArena, list[VersionNode]]) -> None:
    arena, nodes = upgrading
    nodes[0].hangs = True
    with RollingUpgrade(NEW).hold(arena, nodes) as bite:
        assert not bite.bit
        assert "the roll ended at broker-1: broker-1 did not end" in bite.proof
    assert [node.runs for node in nodes[1:]] == [OLD, OLD], "the nodes after it were left alone"


def test_features_are_raised_to_levels_that_all_nodes_support() -> None:
    assert newest_for_all([SUPPORTED[OLD], SUPPORTED[NEW]], {METADATA_VERSION: 21}) == {}
    assert newest_for_all([SUPPORTED[NEW], SUPPORTED[NEW]], {METADATA_VERSION: 21}) == {
        METADATA_VERSION: 30,
        "transaction.version": 2,
    }
    assert newest_for_all([], {}) == {}


def test_bad_settings_and_nodes_without_the_power_are_named(
    upgrading: tuple[FakeArena, list[VersionNode]],
) -> None:
    with pytest.raises(UsageError, match="limit_s"):
        RollingUpgrade(limit_s=0)
    arena, _ = upgrading
    plain: list[Node] = [ProcessNode("broker-1")]
    assert not isinstance(plain[0], Upgradable)
    with (
        pytest.raises(FaultError, match="broker-1 cannot run another version"),
        RollingUpgrade().hold(arena, plain),
    ):
        pass
