"""A cluster in memory that serves admin calls: leaders, epochs, offsets and settings as brokers keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from harness.contracts import PartitionState
from harness.kafka.protocol.admin_requests import EARLIEST
from harness.kafka.protocol.raw_client import Address, WireError
from tests.fake_arena import TOPIC, FakeArena, FakeCluster, FakeNode


@dataclass
class SleepyNode(FakeNode):
    """A node that can be paused."""

    asleep: bool = False

    def pause(self) -> None:
        self.calls.append("pause")
        self.asleep = True

    def resume(self) -> None:
        self.calls.append("resume")
        self.asleep = False

    def paused(self) -> bool:
        return self.asleep

    def reachable(self) -> bool:
        return super().reachable() and not self.asleep


@dataclass
class OperatedCluster(FakeCluster):
    """A leader stays leader while it is in sync; a broker that was away is out of sync until the partition has a leader."""

    leaders: dict[int, str | None] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    behind: set[str] = field(default_factory=set)

    def controllers(self) -> Sequence[str]:
        return ["controller-1"]

    def partitions(self, topic: str) -> Sequence[PartitionState]:
        there = self.registered_brokers()
        self.behind |= {name for name in (b.name for b in self.brokers) if name not in there}
        states = []
        for number, replicas in self.replicas.items():
            in_sync = tuple(name for name in replicas if name not in self.behind)
            if self.leaders.get(number) not in in_sync:
                self.lead(number, in_sync[0] if in_sync else None)
            elif len(there) == len(self.brokers):
                self.behind.clear()
            leader, epoch = self.leaders[number], self.epochs[number]
            states.append(PartitionState(topic, number, leader, epoch, tuple(replicas), in_sync))
        return states

    def lead(self, number: int, leader: str | None) -> None:
        self.leaders[number], self.epochs[number] = leader, self.epochs.get(number, -1) + 1


@dataclass
class Brokers:
    """A fake of harness.kafka.protocol.admin_requests and of the library's admin client."""

    cluster: OperatedCluster
    refusing: bool = False  # reports success, and does nothing
    written: int = 300  # records that a partition gets between two requests
    bounds: dict[int, tuple[int, int]] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    members: bool = False  # whether the group has members
    overrides: dict[str, str] = field(default_factory=dict)
    retention: bool = True  # whether brokers look for expired segments
    calls: list[str] = field(default_factory=list)
    EARLIEST: int = EARLIEST
    LATEST: int = -1

    @property
    def accepts(self) -> bool:
        """True if enough replicas are in sync for acks=all; brokers ignore what is above the number of replicas."""
        needed = int(self.overrides.get("min.insync.replicas", 1))
        return min(needed, len(self.cluster.brokers)) <= len(self.cluster.registered_brokers())

    # harness.kafka.protocol.admin_requests

    def reassign(
        self, address: Address, topic: str, replicas: Mapping[int, Sequence[int]], timeout_s: float
    ) -> dict[int, str]:
        self.calls.append(f"reassign {dict(replicas)}")
        if self.refusing:
            return {0: "not now"}
        names = [f"broker-{n}" for n in range(len(self.cluster.brokers) + 1)]
        new = {number: tuple(names[i] for i in ids) for number, ids in replicas.items()}
        self.cluster.replicas = {**self.cluster.replicas, **new}
        return {}

    def elect(
        self, address: Address, topic: str, partitions: Sequence[int], unclean: bool, timeout_s: float
    ) -> dict[int, str]:
        self.calls.append(f"elect{' unclean' if unclean else ''} {list(partitions)}")
        for number in partitions:
            alive = [n for n in self.cluster.replicas[number] if n in self.cluster.registered_brokers()]
            if alive and self.cluster.leaders[number] != alive[0]:
                self.cluster.behind.discard(alive[0])
                self.cluster.lead(number, alive[0])
        return {}

    def offsets(
        self, address: Address, topic: str, partitions: Sequence[int], which: int, timeout_s: float
    ) -> dict[int, int]:
        for number in partitions:
            start, end = self.bounds.get(number, (0, 0))
            self.bounds[number] = start, end + (self.written if which == EARLIEST and self.accepts else 0)
            if self.retention and self.overrides.get("retention.ms") == "1":
                self.bounds[number] = self.bounds[number][1], self.bounds[number][1]
        return {number: self.bounds[number][0 if which == EARLIEST else 1] for number in partitions}

    def end_of_epoch(self, address: Address, topic: str, partition: int, epoch: int, timeout_s: float) -> int:
        if address[0] != self.cluster.leaders[partition]:
            raise WireError(f"{address[0]} does not lead {partition}")
        return max(0, self.bounds[partition][1] - 100)

    # the admin client

    def create_partitions(self, wanted: Sequence[Any], **_: Any) -> Mapping[str, Future[None]]:
        self.calls.append("create_partitions")
        names = [broker.name for broker in self.cluster.brokers]
        total = 0 if self.refusing else wanted[0].new_total_count
        more = dict.fromkeys(range(len(self.cluster.replicas), total), names)
        self.cluster.replicas = {**self.cluster.replicas, **more}
        return {TOPIC: _done(None)}

    def list_consumer_group_offsets(self, asked: Sequence[Any], **_: Any) -> Mapping[str, Future[Any]]:
        places = [
            SimpleNamespace(topic=TOPIC, partition=number, offset=offset)
            for number, offset in self.committed.items()
        ]
        return {asked[0].group_id: _done(SimpleNamespace(topic_partitions=places))}

    def delete_consumer_groups(self, groups: Sequence[str], **_: Any) -> Mapping[str, Future[None]]:
        self.calls.append("delete_consumer_groups")
        if self.members:
            refused: Future[None] = Future()
            refused.set_exception(KafkaException(KafkaError(KafkaError.NON_EMPTY_GROUP)))
            return {groups[0]: refused}
        self.committed = {}
        return {groups[0]: _done(None)}

    def delete_records(self, asked: Sequence[Any], **_: Any) -> Mapping[Any, Future[None]]:
        self.calls.append("delete_records")
        for place in asked if not self.refusing else ():
            self.bounds[place.partition] = place.offset, self.bounds[place.partition][1]
        return {0: _done(None)}

    def describe_configs(self, asked: Sequence[Any], **_: Any) -> Mapping[Any, Future[Any]]:
        own = {name: SimpleNamespace(value=value, source=1) for name, value in self.overrides.items()}
        default = {"cleanup.policy": SimpleNamespace(value="delete", source=5)}
        return {asked[0]: _done({**default, **own})}

    def incremental_alter_configs(self, asked: Sequence[Any], **_: Any) -> Mapping[Any, Future[None]]:
        for entry in asked[0].incremental_configs:
            self.calls.append(f"{entry.name}={entry.value}")
            self.overrides.pop(entry.name, None)
            if entry.value is not None and not self.refusing:
                self.overrides[entry.name] = entry.value
        return {asked[0]: _done(None)}


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def make_operated() -> FakeArena:
    """Three brokers and a controller; broker-2 leads partition 0 though broker-1 is preferred, broker-1 leads 1."""
    names = [f"broker-{n}" for n in (1, 2, 3)]
    brokers: list[FakeNode] = [SleepyNode(name, [peer for peer in names if peer != name]) for name in names]
    replicas = {0: ("broker-1", "broker-2", "broker-3"), 1: ("broker-1", "broker-3", "broker-2")}
    cluster = OperatedCluster(brokers, replicas)
    cluster.leaders, cluster.epochs = {0: "broker-2", 1: "broker-1"}, {0: 4, 1: 7}
    return FakeArena(cluster, [FakeNode("producer-1")])


def node(arena: FakeArena, number: int) -> SleepyNode:
    found = arena.cluster.brokers[number - 1]
    assert isinstance(found, SleepyNode)
    return found


def places(arena: FakeArena) -> list[tuple[str | None, tuple[str, ...]]]:
    return [(state.leader, state.replicas) for state in arena.cluster.partitions("orders")]
