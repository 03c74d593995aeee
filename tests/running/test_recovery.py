"""Nodes that an earlier run left ended or paused are brought back, but never those of a cluster with other users."""

from __future__ import annotations

from dataclasses import dataclass

from harness.contracts import Pausable, Shared
from harness.running.recovery import bring_back
from tests.fake_arena import FakeCluster, FakeNode


@dataclass
class PausableNode(FakeNode):
    stopped: bool = False

    def pause(self) -> None:
        self.stopped = True

    def resume(self) -> None:
        self.calls.append("resume")
        self.stopped = False

    def paused(self) -> bool:
        return self.stopped


class OthersCluster(FakeCluster):
    prefix = "onceproof-"


def _nodes() -> list[FakeNode]:
    nodes: list[FakeNode] = [PausableNode(f"broker-{number}") for number in (1, 2, 3)]
    nodes[0].alive = False
    assert isinstance(nodes[1], Pausable)
    nodes[1].pause()
    return nodes


def test_ended_and_paused_nodes_run_again_and_are_named() -> None:
    nodes = _nodes()
    assert bring_back(FakeCluster(nodes, {})) == ["broker-2 was still paused", "broker-1 did not run"]
    assert [node.calls for node in nodes] == [["restart"], ["resume"], []]
    assert all(node.running() for node in nodes)


def test_a_whole_cluster_is_left_as_it_is() -> None:
    nodes: list[FakeNode] = [FakeNode("broker-1"), PausableNode("broker-2")]
    assert bring_back(FakeCluster(nodes, {})) == []
    assert [node.calls for node in nodes] == [[], []]


def test_nodes_of_a_cluster_with_other_users_are_left_alone() -> None:
    nodes = _nodes()
    others = OthersCluster(nodes, {})
    assert isinstance(others, Shared)
    assert bring_back(others) == []
    assert [node.calls for node in nodes] == [[], [], []]
