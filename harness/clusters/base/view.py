"""The view of a cluster: the answers of its servers, each asked by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from harness.clusters.base.broker import Broker
from harness.clusters.base.server import Server
from harness.clusters.links.mesh import Member
from harness.contracts import BrokerPlace, PartitionState
from harness.errors import ClusterError
from harness.kafka.protocol import raw_client

T = TypeVar("T")


class Askable(Protocol):
    """A server that can be asked by itself."""

    @property
    def name(self) -> str: ...
    def running(self) -> bool: ...
    def paused(self) -> bool: ...


class AskedBroker(Askable, Protocol):
    member: Member

    @property
    def control(self) -> raw_client.Address: ...
    def metadata(self, *topics: str) -> raw_client.Metadata: ...


N = TypeVar("N", bound=Askable)
_ASK_LIMIT_S = 2.0


class LocalView:
    """Asks all running servers at once and takes the newest answer: a cut-off broker has an old view."""

    def __init__(self, nodes: Sequence[Server]) -> None:
        brokers = [node for node in nodes if isinstance(node, Broker)]
        self._brokers: Sequence[AskedBroker] = brokers
        self._round_trips = {broker.name: broker.produce_round_trip_ms for broker in brokers}
        self._controllers = [node for node in nodes if node.member.controller]
        self._names = {node.member.id: node.name for node in nodes}

    def partitions(self, topic: str) -> Sequence[PartitionState]:
        """Return, per partition, the answer with the highest leader epoch; among equals, that of most brokers."""
        answers = ask_all(self._brokers, lambda broker: broker.metadata(topic)).values()
        if not answers:
            raise ClusterError(f"no broker answers the request for the partitions of {topic}")
        by_index: dict[int, list[raw_client.Partition]] = {}
        for answer in answers:
            for partition in answer.topics.get(topic, ()):
                by_index.setdefault(partition.index, []).append(partition)
        return [self._state(topic, _newest(by_index[index])) for index in sorted(by_index)]

    def active_controller(self) -> str:
        """Return the controller that claims to lead the quorum; of two, the one with the higher epoch."""
        answers = ask_all(
            self._controllers, lambda node: raw_client.describe_quorum(node.controller, _ASK_LIMIT_S)
        )
        leading = [answer for answer in answers.values() if answer.error == 0 and answer.leader >= 0]
        if not leading:
            raise ClusterError("no controller says that it leads the quorum")
        return self._names[max(leading, key=lambda answer: answer.leader_epoch).leader]

    def controllers(self) -> Sequence[str]:
        return [node.name for node in self._controllers]

    def coordinator(self, key: str, *, transaction: bool) -> str | None:
        """Return the coordinator that most of the answering brokers name."""
        answers = ask_all(
            self._brokers,
            lambda broker: raw_client.coordinator(
                broker.control, key, transaction=transaction, timeout_s=_ASK_LIMIT_S
            ),
        )
        named = Counter(node for node in answers.values() if node is not None).most_common(1)
        return self._name(named[0][0]) if named else None

    def registered_brokers(self) -> Sequence[str]:
        """Return the brokers that more than half of the answering brokers consider alive."""
        answers = [a.brokers for a in ask_all(self._brokers, lambda broker: broker.metadata()).values()]
        return [
            broker.name
            for broker in self._brokers
            if sum(broker.member.id in alive for alive in answers) * 2 > len(answers)
        ]

    def broker_places(self) -> Mapping[str, BrokerPlace]:
        return {broker.name: BrokerPlace(broker.member.id, broker.control) for broker in self._brokers}

    def produce_round_trip_ms(self, broker: str) -> float:
        if broker not in self._round_trips:
            raise ClusterError(f"no broker {broker!r}; there are: {', '.join(self._round_trips)}")
        return self._round_trips[broker]()

    def _name(self, node: int) -> str:
        """Return the node's name, also if it joined after the view was made, or was away at that time."""
        return self._names.get(node, f"broker-{node}")

    def _state(self, topic: str, partition: raw_client.Partition) -> PartitionState:
        return PartitionState(
            topic=topic,
            partition=partition.index,
            leader=self._names.get(partition.leader),
            leader_epoch=partition.leader_epoch,
            replicas=tuple(self._name(i) for i in partition.replicas),
            in_sync=tuple(self._name(i) for i in partition.in_sync),
        )


def ask_all(nodes: Sequence[N], question: Callable[[N], T]) -> dict[str, T]:
    """Ask all nodes in parallel; return the answers by name of the nodes that run and answer."""
    there = [node for node in nodes if node.running() and not node.paused()]

    def ask(node: N) -> T | None:
        try:
            return question(node)
        except raw_client.WireError:
            return None

    with ThreadPoolExecutor(max_workers=max(1, len(there))) as pool:
        answers = pool.map(ask, there)
        return {node.name: answer for node, answer in zip(there, answers, strict=True) if answer is not None}


def _newest(answers: Sequence[raw_client.Partition]) -> raw_client.Partition:
    epoch = max(answer.leader_epoch for answer in answers)
    return Counter(answer for answer in answers if answer.leader_epoch == epoch).most_common(1)[0][0]
