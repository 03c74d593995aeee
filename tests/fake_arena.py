"""A cluster in memory that moves leaders when nodes fail, for tests of faults and targets without Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.contracts import (
    BrokerPlace,
    ClusterDescription,
    Cut,
    Direction,
    DiskFault,
    DiskHarm,
    Lane,
    Link,
    Node,
    PartitionState,
    TopicSettings,
)
from harness.errors import ClusterError

TOPIC = "orders"
IMPATIENT = 0.005  # a patience with which faults wait 0.3 s for healing instead of 60 s


@dataclass
class FakeNode:
    """A node with every power of a broker; `stubborn` powers have no effect."""

    name: str
    peers: Sequence[str] = ()
    stubborn: bool = False
    alive: bool = True
    delay_ms: int = 0
    cuts: list[Cut] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def kill(self) -> None:
        self.calls.append("kill")
        self.alive = self.stubborn

    def restart(self) -> None:
        self.calls.append("restart")
        self.alive = True

    def running(self) -> bool:
        return self.alive

    def links(self) -> Sequence[Link]:
        inner = [link for peer in self.peers for link in (Link(self.name, peer), Link(peer, self.name))]
        return [*inner, Link(Lane.PRODUCE.value, self.name), Link(Lane.CONSUME.value, self.name)]

    def peer_links(self) -> Sequence[Link]:
        return [link for link in self.links() if link.source not in list(Lane)]

    def sever(self, cuts: Sequence[Cut], by: str = "") -> None:
        self.calls.append("sever")
        if not self.stubborn:
            self.cuts += cuts

    def mend(self, by: str | None = None) -> None:
        self.calls.append("mend")
        self.cuts.clear()

    def passes(self, link: Link) -> Mapping[Direction, bool]:
        cut = {each.direction for each in self.cuts if each.link == link}
        requests = not cut & {Direction.BOTH, Direction.REQUESTS}
        answers = not cut & {Direction.BOTH, Direction.ANSWERS}
        return {
            Direction.REQUESTS: requests,
            Direction.ANSWERS: answers,
            Direction.BOTH: requests and answers,
        }

    def break_disk(self, how: DiskFault) -> str:
        self.calls.append(f"break_disk {how.topics_prefix}")
        self.delay_ms = 0 if self.stubborn else how.delay_ms
        return "byteman"

    def disk_latency_ms(self, harm: DiskHarm) -> float:
        return 1.0 + self.delay_ms

    def read_latency_ms(self) -> float:
        return self.disk_latency_ms(DiskHarm.SLOW_READ)

    def mend_disk(self, harm: DiskHarm | None = None) -> None:
        self.calls.append("mend_disk")
        self.delay_ms = 0

    def reachable(self) -> bool:
        inner = [cut for cut in self.cuts if cut.link.source == self.name]
        return self.alive and not inner


@dataclass
class FakeCluster:
    """Cluster and view in one: the first reachable replica leads, the first reachable broker controls."""

    brokers: list[FakeNode]
    replicas: Mapping[int, Sequence[str]]
    dumb: bool = False  # answers nothing
    coordinators: dict[tuple[str, bool], str] = field(default_factory=dict)

    def view(self) -> FakeCluster:
        return self

    def nodes(self) -> Sequence[Node]:
        return self.brokers

    def partitions(self, topic: str) -> Sequence[PartitionState]:
        if self.dumb:
            raise ClusterError("no broker answers")
        there = self.registered_brokers()
        states = []
        for number, replicas in self.replicas.items():
            in_sync = tuple(name for name in replicas if name in there)
            leader = in_sync[0] if in_sync else None
            states.append(PartitionState(topic, number, leader, 0, tuple(replicas), in_sync))
        return states if topic == TOPIC else []

    def active_controller(self) -> str:
        return self.registered_brokers()[-1]

    def controllers(self) -> Sequence[str]:
        return [broker.name for broker in self.brokers]

    def coordinator(self, key: str, *, transaction: bool) -> str | None:
        return self.coordinators.get((key, transaction))

    def registered_brokers(self) -> Sequence[str]:
        return [broker.name for broker in self.brokers if broker.reachable()]

    def broker_places(self) -> Mapping[str, BrokerPlace]:
        return {broker.name: BrokerPlace(n, (broker.name, n)) for n, broker in enumerate(self.brokers, 1)}

    def produce_round_trip_ms(self, broker: str) -> float:
        return 1.5 + next(each.delay_ms for each in self.brokers if each.name == broker)

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def create_topic(self, name: str, settings: TopicSettings) -> None: ...
    def delete_topic(self, name: str) -> None: ...
    def begin_logs(self) -> None: ...
    def collect_logs(self, into: Path) -> None: ...

    def bootstrap_servers(self, lane: Lane) -> str:
        return lane.value

    def client_settings(self, lane: Lane) -> Mapping[str, Any]:
        return {}

    def residue(self) -> Sequence[str]:
        return []

    def describe(self) -> ClusterDescription:
        return ClusterDescription("fake")


@dataclass
class FakeArena:
    cluster: FakeCluster
    workers: Sequence[FakeNode] = ()
    topic: str = TOPIC
    group: str = f"{TOPIC}-group"
    patience: float = 1.0

    def nodes(self) -> Sequence[Node]:
        return [*self.cluster.nodes(), *self.workers]


def make_arena(patience: float = 1.0) -> FakeArena:
    """Three brokers; partition 0 is led by broker-2, partition 1 by broker-1; broker-3 controls; a worker."""
    names = [f"broker-{n}" for n in (1, 2, 3)]
    brokers = [FakeNode(name, [peer for peer in names if peer != name]) for name in names]
    replicas = {0: ("broker-2", "broker-3", "broker-1"), 1: ("broker-1", "broker-2")}
    return FakeArena(FakeCluster(brokers, replicas), [FakeNode("producer-1")], patience=patience)
