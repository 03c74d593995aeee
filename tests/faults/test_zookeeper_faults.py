"""Targets and faults on clusters with ZooKeeper: who leads, who votes, and which links are cut."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from faults._ensemble import leader, voters
from faults._shapes import Wiring
from faults.sever import Sever
from harness.clusters.links.mesh import Mesh, members_with_zookeeper
from harness.contracts import Direction, EnsembleView, Link
from harness.errors import UsageError
from harness.targets import Target, other_zookeepers, zookeeper_leader, zookeeper_majority
from tests.fake_arena import FakeArena, FakeCluster, FakeNode, make_arena


@dataclass
class EnsembleCluster(FakeCluster):
    modes: dict[str, str] = field(default_factory=dict)

    def view(self) -> EnsembleCluster:
        return self

    def nodes(self) -> list[Any]:
        return [*self.brokers, *map(FakeNode, self.modes)]

    def zookeepers(self) -> Mapping[str, str]:
        return self.modes


def _arena(*modes: str) -> FakeArena:
    plain = make_arena().cluster
    names = {f"zookeeper-{n}": mode for n, mode in enumerate(modes, 1)}
    return FakeArena(EnsembleCluster(plain.brokers, plain.replicas, modes=names))


def test_targets_pick_by_the_mode_that_servers_report() -> None:
    arena = _arena("follower", "leader", "follower")
    picked = {
        str(t): [n.name for n in t.pick(arena)]
        for t in (zookeeper_leader(), other_zookeepers(), zookeeper_majority())
    }
    assert picked == {
        "zookeeper_leader": ["zookeeper-2"],
        "zookeepers": ["zookeeper-1", "zookeeper-3"],
        "zookeeper_majority": ["zookeeper-2", "zookeeper-1"],
    }
    assert zookeeper_leader().pick(_arena("", "", "")) == []


def test_targets_can_be_made_again_and_raise_without_zookeeper() -> None:
    for target in (zookeeper_leader(), other_zookeepers(), zookeeper_majority()):
        assert Target.of(json.loads(json.dumps(target.describe()))) == target
        with pytest.raises(UsageError, match="no ZooKeeper"):
            target.pick(make_arena())


def test_voters_are_zookeeper_servers_or_else_controllers() -> None:
    arena = _arena("follower", "leader", "follower")
    assert isinstance(arena.cluster.view(), EnsembleView)
    assert list(voters(arena.cluster)) == ["zookeeper-1", "zookeeper-2", "zookeeper-3"]
    assert leader(arena.cluster) == "zookeeper-2"
    plain = make_arena().cluster
    assert list(voters(plain)) == ["broker-1", "broker-2", "broker-3"]
    assert leader(plain) is None


MESH = Mesh(99, members_with_zookeeper(3, 3))
WIRING = Wiring.of([m.name for m in MESH.members], [route.link for route in MESH.routes()])


def test_links_with_zookeeper_count_as_links_with_controllers() -> None:
    cut = [c.link for c in Sever("controllers").cuts(WIRING, ["broker-1"])]
    assert cut == [Link("broker-1", f"zookeeper-{n}", zookeeper=True) for n in (1, 2, 3)]
    copied = {c.link.source for c in Sever("replication").cuts(WIRING, ["zookeeper-1"])}
    assert copied == {"zookeeper-2", "zookeeper-3"}
    assert all(not link.zookeeper for link in WIRING.chosen(["broker-1"], "replication"))


def test_nodes_that_are_cut_off_lose_leadership_while_the_others_have_a_quorum() -> None:
    assert Sever().losers(WIRING, ["zookeeper-1"]) == {"zookeeper-1"}
    assert Sever().losers(WIRING, ["broker-1"]) == {"broker-1"}
    assert Sever().losers(WIRING, ["zookeeper-1", "zookeeper-2"]) == set()
    assert Sever(direction=Direction.REQUESTS).losers(WIRING, ["broker-1"]) == {"broker-1"}
    assert Sever(direction=Direction.ANSWERS).losers(WIRING, ["broker-1"]) == set(), "sessions are renewed"
