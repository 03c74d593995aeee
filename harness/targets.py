"""Targets of faults, by role. A target is plain data and reads metadata only when the window opens."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.contracts import Arena, EnsembleView, Node, PartitionState
from harness.errors import UsageError
from harness.ledger.transform import output_of

NUMBERED_WORKERS = ("producer", "consumer", "copier")  # targets with a number


@dataclass(frozen=True)
class Target:
    """Picks nodes of a running run; none if no node has the role at the moment."""

    role: str
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise UsageError(f"unknown target {self.role!r}; choose one of {', '.join(sorted(ROLES))}")

    def pick(self, arena: Arena) -> Sequence[Node]:
        wanted = list(ROLES[self.role](arena, **dict(self.settings)))
        by_name = {node.name: node for node in arena.nodes()}
        return [by_name[name] for name in dict.fromkeys(wanted) if name in by_name]

    def describe(self) -> Mapping[str, Any]:
        """Return the target as data, from which `Target.of` makes it again."""
        return {"target": self.role, **dict(self.settings)}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Target:
        settings = {name: value for name, value in described.items() if name != "target"}
        return cls(str(described["target"]), tuple(settings.items()))

    def __str__(self) -> str:
        # Partition 0 is left out: most scenarios use it.
        shown = [f"{value}" for name, value in self.settings if (name, value) != ("partition", 0)]
        return "-".join([self.role, *shown])


# --- by role --------------------------------------------------------------------------------------


def leader_of(partition: int = 0) -> Target:
    """The leader of a partition of the topic under test."""
    return Target("leader", (("partition", partition),))


def follower_of(partition: int = 0) -> Target:
    """The first in-sync replica of a partition, in the order of its replicas, that does not lead."""
    return Target("follower", (("partition", partition),))


def laggard_of(partition: int = 0) -> Target:
    """The first replica of a partition that is out of the in-sync set."""
    return Target("laggard", (("partition", partition),))


def replicas_of(partition: int = 0) -> Target:
    """All replicas of a partition."""
    return Target("replicas", (("partition", partition),))


def active_controller() -> Target:
    """The leader of the controller quorum."""
    return Target("controller")


def other_controllers() -> Target:
    """The controllers that do not lead the quorum."""
    return Target("controllers")


def zookeeper_leader() -> Target:
    """The server that leads the ZooKeeper ensemble."""
    return Target("zookeeper_leader")


def other_zookeepers() -> Target:
    """The servers of the ZooKeeper ensemble that do not lead it."""
    return Target("zookeepers")


def zookeeper_majority() -> Target:
    """A majority of the ZooKeeper ensemble, its leader included: the other servers are no quorum."""
    return Target("zookeeper_majority")


def group_coordinator() -> Target:
    """The broker that coordinates the run's consumer group."""
    return Target("group_coordinator")


def transaction_coordinator(producer: int = 1, role: str = "producer") -> Target:
    """The broker that coordinates the transactions of a producer of the run, or of another transactional worker."""
    others = (("role", role),) if role != "producer" else ()
    return Target("transaction_coordinator", (("producer", producer), *others))


def output_leader(partition: int = 0) -> Target:
    """The leader of a partition of the output of the run's pipeline."""
    return Target("output_leader", (("partition", partition),))


def producer(number: int = 1) -> Target:
    """A producer worker."""
    return Target("producer", (("number", number),))


def consumer(number: int = 1) -> Target:
    """A consumer worker."""
    return Target("consumer", (("number", number),))


def copier(number: int = 1) -> Target:
    """A member of a pipeline's group."""
    return Target("copier", (("number", number),))


def worker(name: str) -> Target:
    """Any worker of the run by its name, such as `rival-1`."""
    return Target("worker", (("name", name),))


def minority(seed: int = 0) -> Target:
    """Less than half of the brokers, chosen at random: the cluster has to work without them."""
    return Target("minority", (("seed", seed),))


def majority(seed: int = 0) -> Target:
    """More than half of the brokers, chosen at random."""
    return Target("majority", (("seed", seed),))


def every_broker() -> Target:
    """All brokers that are registered."""
    return Target("brokers")


def everyone() -> Target:
    """All nodes of the cluster, controllers included."""
    return Target("everyone")


def some_brokers(count: int, seed: int) -> Target:
    """Brokers chosen at random; the same ones for the same seed."""
    if count < 1:
        raise UsageError(f"some_brokers: at least one, not {count}")
    return Target("some", (("count", count), ("seed", seed)))


# --- finding the nodes of a role ------------------------------------------------------------------


def _follower(arena: Arena, partition: int) -> Iterable[str]:
    state = _partition(arena, partition)
    return [name for name in state.replicas if name in state.in_sync and name != state.leader][:1]


def _laggard(arena: Arena, partition: int) -> Iterable[str]:
    state = _partition(arena, partition)
    return [name for name in state.replicas if name not in state.in_sync][:1]


def _other_controllers(arena: Arena) -> Iterable[str]:
    view = arena.cluster.view()
    active = view.active_controller()
    return [name for name in view.controllers() if name != active]


def _zookeepers(arena: Arena) -> Mapping[str, str]:
    view = arena.cluster.view()
    if not isinstance(view, EnsembleView):
        raise UsageError("this cluster has no ZooKeeper; use --cluster zookeeper")
    return view.zookeepers()


def _zookeeper_leader(arena: Arena) -> Iterable[str]:
    return [name for name, mode in _zookeepers(arena).items() if mode == "leader"]


def _other_zookeepers(arena: Arena) -> Iterable[str]:
    return [name for name, mode in _zookeepers(arena).items() if mode != "leader"]


def _zookeeper_majority(arena: Arena) -> Iterable[str]:
    modes = _zookeepers(arena)
    leader_first = sorted(modes, key=lambda name: (modes[name] != "leader", name))
    return leader_first[: len(modes) // 2 + 1]


def _transaction_coordinator(arena: Arena, producer: int, role: str = "producer") -> Iterable[str]:
    # As SenderSpec.transactional_id makes it.
    name = f"{arena.topic}-{role}-{producer}"
    return _found(arena.cluster.view().coordinator(name, transaction=True))


def _worker(arena: Arena, name: str) -> Iterable[str]:
    if name not in [node.name for node in arena.nodes()]:
        raise UsageError(f"no worker {name}; the run has: {', '.join(_workers(arena)) or 'none'}")
    return [name]


def _random_brokers(arena: Arena, count: int, seed: int) -> Iterable[str]:
    brokers = list(arena.cluster.view().registered_brokers())
    return sorted(random.Random(seed).sample(brokers, min(count, len(brokers))))


def _minority(arena: Arena, seed: int) -> Iterable[str]:
    return _random_brokers(arena, (len(arena.cluster.view().registered_brokers()) - 1) // 2, seed)


def _majority(arena: Arena, seed: int) -> Iterable[str]:
    return _random_brokers(arena, len(arena.cluster.view().registered_brokers()) // 2 + 1, seed)


ROLES: Mapping[str, Callable[..., Iterable[str]]] = {
    "leader": lambda arena, partition: _found(_partition(arena, partition).leader),
    "follower": _follower,
    "laggard": _laggard,
    "replicas": lambda arena, partition: _partition(arena, partition).replicas,
    "controller": lambda arena: [arena.cluster.view().active_controller()],
    "controllers": _other_controllers,
    "zookeeper_leader": _zookeeper_leader,
    "zookeepers": _other_zookeepers,
    "zookeeper_majority": _zookeeper_majority,
    "group_coordinator": lambda arena: _found(
        arena.cluster.view().coordinator(arena.group, transaction=False)
    ),
    "transaction_coordinator": _transaction_coordinator,
    "output_leader": lambda arena, partition: _found(
        _partition(arena, partition, output_of(arena.topic)).leader
    ),
    "producer": lambda arena, number: _worker(arena, f"producer-{number}"),
    "consumer": lambda arena, number: _worker(arena, f"consumer-{number}"),
    "copier": lambda arena, number: _worker(arena, f"copier-{number}"),
    "worker": _worker,
    "minority": _minority,
    "majority": _majority,
    "brokers": lambda arena: arena.cluster.view().registered_brokers(),
    "everyone": lambda arena: [node.name for node in arena.cluster.nodes()],
    "some": _random_brokers,
}


def _partition(arena: Arena, number: int, topic: str = "") -> PartitionState:
    topic = topic or arena.topic
    states = arena.cluster.view().partitions(topic)
    for state in states:
        if state.partition == number:
            return state
    there = ", ".join(str(state.partition) for state in states) or "none"
    raise UsageError(f"{topic} has no partition {number}; its partitions: {there}")


def _found(name: str | None) -> Iterable[str]:
    return [] if name is None else [name]


def _workers(arena: Arena) -> list[str]:
    own = {node.name for node in arena.cluster.nodes()}
    return [node.name for node in arena.nodes() if node.name not in own]
