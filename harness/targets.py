"""Whom a fault hits, by role. Targets only read metadata, at the moment when the window opens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.contracts import Arena, Node, PartitionState
from harness.errors import UsageError


class Target(Protocol):
    """Picks nodes of a running run; none when the role has no holder at the moment."""

    def pick(self, arena: Arena) -> Sequence[Node]: ...
    def describe(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class LeaderOf:
    """The leader of a partition of the topic under test."""

    partition: int = 0

    def pick(self, arena: Arena) -> Sequence[Node]:
        leader = _partition(arena, self.partition).leader
        return _named(arena, [] if leader is None else [leader])

    def describe(self) -> Mapping[str, Any]:
        return {"target": "leader", "partition": self.partition}

    def __str__(self) -> str:
        return _with_number("leader", self.partition)


@dataclass(frozen=True)
class FollowerOf:
    """The first in-sync replica of a partition, in the order of its replicas, that does not lead."""

    partition: int = 0

    def pick(self, arena: Arena) -> Sequence[Node]:
        state = _partition(arena, self.partition)
        followers = [name for name in state.replicas if name in state.in_sync and name != state.leader]
        return _named(arena, followers[:1])

    def describe(self) -> Mapping[str, Any]:
        return {"target": "follower", "partition": self.partition}

    def __str__(self) -> str:
        return _with_number("follower", self.partition)


@dataclass(frozen=True)
class ActiveController:
    """The leader of the controller quorum."""

    def pick(self, arena: Arena) -> Sequence[Node]:
        return _named(arena, [arena.cluster.view().active_controller()])

    def describe(self) -> Mapping[str, Any]:
        return {"target": "controller"}

    def __str__(self) -> str:
        return "controller"


@dataclass(frozen=True)
class EveryBroker:
    """All brokers that are registered."""

    def pick(self, arena: Arena) -> Sequence[Node]:
        return _named(arena, arena.cluster.view().registered_brokers())

    def describe(self) -> Mapping[str, Any]:
        return {"target": "brokers"}

    def __str__(self) -> str:
        return "brokers"


def leader_of(partition: int = 0) -> LeaderOf:
    return LeaderOf(partition)


def follower_of(partition: int = 0) -> FollowerOf:
    return FollowerOf(partition)


def active_controller() -> ActiveController:
    return ActiveController()


def every_broker() -> EveryBroker:
    return EveryBroker()


def _partition(arena: Arena, number: int) -> PartitionState:
    states = arena.cluster.view().partitions(arena.topic)
    for state in states:
        if state.partition == number:
            return state
    there = ", ".join(str(state.partition) for state in states) or "none"
    raise UsageError(f"{arena.topic} has no partition {number}; there are: {there}")


def _named(arena: Arena, names: Iterable[str]) -> Sequence[Node]:
    wanted = list(names)
    return [node for node in arena.nodes() if node.name in wanted]


def _with_number(role: str, partition: int) -> str:
    return role if partition == 0 else f"{role}-{partition}"
