"""Shared by faults that act through the admin API: they change the topic under test and remember its earlier state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.contracts import Arena, Node, PartitionState
from harness.errors import ClusterError

WAYS: Mapping[str, str] = {"admin api": "nothing"}
WAY = "admin api"
NO_TARGET = "there was no target"


class Memory:
    """The state before a hold, kept for `healed`, which is called later with only the nodes.

    It belongs to a fault but not to its value: equal faults may remember different states.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ...], Any] = {}

    def keep(self, arena: Arena, nodes: Sequence[Node], what: Any) -> None:
        self._kept[_key(arena, nodes)] = what

    def of(self, arena: Arena, nodes: Sequence[Node], otherwise: Any) -> Any:
        return self._kept.get(_key(arena, nodes), otherwise)


def _key(arena: Arena, nodes: Sequence[Node]) -> tuple[str, ...]:
    return (arena.topic, *(node.name for node in nodes))


def names_of(nodes: Sequence[Node]) -> frozenset[str]:
    return frozenset(node.name for node in nodes)


def summarize(partitions: Sequence[PartitionState]) -> str:
    """Return the name of the first partition, and how many more there are."""
    more = f" (and {len(partitions) - 1} more)" if len(partitions) > 1 else ""
    return f"{partitions[0].topic}-{partitions[0].partition}{more}"


def differs(arena: Arena, before: Sequence[PartitionState]) -> str | None:
    """Describe the first partition whose leader or replicas differ from before; None if there is none."""
    try:
        now = {state.partition: state for state in arena.cluster.view().partitions(arena.topic)}
    except ClusterError as error:
        return str(error)
    for was in before:
        state = now.get(was.partition)
        if state is None or (state.leader, state.replicas) != (was.leader, was.replicas):
            what = "nothing" if state is None else f"leader {state.leader} of {', '.join(state.replicas)}"
            return f"{was.topic}-{was.partition} has {what}, but had leader {was.leader} of {', '.join(was.replicas)}"
    return None
