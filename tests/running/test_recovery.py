"""Between two runs: nodes are brought back, but never those of other users, and a cluster says why it cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Pausable, Shared
from harness.errors import ClusterError
from harness.running.recovery import bring_back, why_unusable
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


def _cluster() -> FakeCluster:
    return FakeCluster([FakeNode("broker-1"), FakeNode("broker-2")], {})


def test_a_whole_cluster_can_be_used() -> None:
    assert why_unusable(_cluster()) == ""


def test_a_broker_that_is_not_registered_is_named() -> None:
    cluster = _cluster()
    cluster.brokers[1].alive = False
    assert "broker-2" in why_unusable(cluster)


def test_a_cluster_without_brokers_cannot_be_used() -> None:
    assert why_unusable(FakeCluster([], {}))


def test_a_fault_that_was_not_undone_is_named() -> None:
    class CutCluster(FakeCluster):
        def residue(self) -> Sequence[str]:
            return ["a cut of broker-1 from broker-2"]

    assert "broker-1 from broker-2" in why_unusable(CutCluster([FakeNode("broker-1")], {}))


def test_a_cluster_that_does_not_answer_cannot_be_used() -> None:
    class SilentCluster(FakeCluster):
        def registered_brokers(self) -> Sequence[str]:
            raise ClusterError("no broker answers")

    assert "no broker answers" in why_unusable(SilentCluster([FakeNode("broker-1")], {}))
