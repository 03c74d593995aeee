"""Every fault of this folder on a real cluster of brokers and controllers: it bites, and it heals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from faults.kill import Kill
from faults.sever import Sever
from faults.slow_disk import SlowDisk
from harness.clusters._node import LocalBroker
from harness.clusters.local import LocalCluster
from harness.contracts import Direction, Fault, Node
from harness.scenario import TopicSettings
from harness.targets import Target, active_controller, every_broker, follower_of, leader_of
from harness.testing.check_fault import check_fault

TOPIC = "orders"


@dataclass(frozen=True)
class BareArena:
    """A cluster and a topic, no workers."""

    cluster: LocalCluster
    topic: str
    group: str = "none"

    def nodes(self) -> Sequence[Node]:
        return self.cluster.nodes()


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareArena]:
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.create_topic(TOPIC, TopicSettings())
        yield BareArena(cluster, TOPIC)


CASES: list[tuple[Fault, Target]] = [
    (Kill(), leader_of()),
    (Kill(), follower_of()),
    (Kill(), active_controller()),
    (Kill(), every_broker()),
    (Sever(), leader_of()),
    (Sever(), active_controller()),
    (Sever(direction=Direction.REQUESTS), leader_of()),
    (Sever("replication"), leader_of()),
    (Sever("answers"), leader_of()),
    (SlowDisk(), leader_of()),
    (SlowDisk(delay_ms=200), follower_of()),
]


@pytest.mark.conformance
@pytest.mark.parametrize(("fault", "target"), CASES, ids=lambda each: str(each))
def test_bites_and_heals(
    arena: BareArena, fault: Fault, target: Target, record_property: Callable[[str, object], None]
) -> None:
    checked = check_fault(fault, arena, target.pick(arena))
    record_property("bite", checked.bite.proof)
    record_property("healing", checked.healing.proof)
    print(f"\n{fault} {target}: {checked.bite.proof} | {checked.healing.proof}")


@pytest.mark.conformance
def test_an_isolated_leader_still_answers_its_clients(arena: BareArena) -> None:
    """Hazard A17 rests on this: cut from its peers, reachable for producers."""
    fault, nodes = Sever(), leader_of().pick(arena)
    before = arena.cluster.view().partitions(TOPIC)[0]
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        after = arena.cluster.view().partitions(TOPIC)[0]
        assert after.leader != before.leader, "the view follows the side that has the quorum"
        assert arena.cluster.view().produce_round_trip_ms(nodes[0].name) > 0
        # No metadata gets past the cut: the isolated broker does not know that it was given up.
        assert isinstance(nodes[0], LocalBroker)
        assert nodes[0].member.id in nodes[0].metadata().brokers
    assert fault.healed(arena, nodes).healed


@pytest.mark.conformance
def test_cut_replication_keeps_the_leader(arena: BareArena) -> None:
    """Hazard A2 rests on this: nobody fetches, and yet neither the leader nor the in-sync set changes."""
    fault, nodes = Sever("replication"), leader_of().pick(arena)
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        state = arena.cluster.view().partitions(TOPIC)[0]
        assert state.leader == nodes[0].name
        assert set(state.in_sync) == set(state.replicas)
    assert fault.healed(arena, nodes).healed
