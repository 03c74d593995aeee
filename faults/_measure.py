"""Measurements shared by faults: leadership, in-sync replicas, and whether links pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from faults import _ensemble
from harness.contracts import Arena, Direction, Healing, Killable, Link, Node, PartitionState, Severable
from harness.errors import ClusterError, FaultError, WaitTimeout
from harness.waiting import wait_until

T = TypeVar("T")
MOVE_LIMIT_S = 30.0
HEAL_LIMIT_S = 60.0
_ASK_EVERY_S = 0.1
_PROBES_AT_ONCE = 64


def able(nodes: Sequence[Node], power: type[T], cannot: str) -> list[T]:
    """Return the nodes typed as `power`; raise FaultError with `cannot`, formatted with the name, for a node without it."""
    for node in nodes:
        if not isinstance(node, power):
            raise FaultError(cannot.format(node.name))
    return [node for node in nodes if isinstance(node, power)]


@dataclass(frozen=True)
class Moved:
    """The answer to whether leadership moved away from the nodes that a fault hit, with its proof."""

    moved: bool
    proof: str
    measured: Mapping[str, float]


@dataclass(frozen=True)
class Leadership:
    """The partitions and roles that some nodes led just before a fault hit them."""

    names: frozenset[str]
    led: tuple[PartitionState, ...]
    controller: str | None  # the active controller, if it is among them
    left: int  # number of other brokers
    zookeeper: str | None = None  # the leader of the ensemble, if it is among them

    @classmethod
    def of(cls, arena: Arena, names: Collection[str]) -> Leadership:
        view = arena.cluster.view()
        led = tuple(state for state in view.partitions(arena.topic) if state.leader in names)
        try:
            controller = view.active_controller()
        except ClusterError:
            controller = None
        left = len(set(view.registered_brokers()) - set(names))
        zookeeper = _ensemble.leader(view)
        return cls(
            frozenset(names),
            led,
            controller if controller in names else None,
            left,
            zookeeper if zookeeper in names else None,
        )

    def wait_moved(self, arena: Arena, since: float) -> Moved:
        """Wait until these nodes lead nothing any more; a partition without other copies loses its leader."""
        if not self.led and self.controller is None and self.zookeeper is None:
            return Moved(True, f"it led no partition of {arena.topic}", {})
        if self.left == 0:
            return Moved(True, f"no other broker is left to lead {self._led_names()}", {})
        limit_s = arena.patience * MOVE_LIMIT_S
        try:
            now = wait_until(lambda: self._elsewhere(arena), limit_s, "leaders stay", every_s=_ASK_EVERY_S)
        except WaitTimeout:
            return Moved(False, f"after {limit_s:g} s it still leads {self._led_names()}", {})
        took = time.monotonic() - since
        measured = {"leader_moved_s": round(took, 3), "partitions_moved": float(len(self.led))}
        return Moved(True, f"{self._move(now)} after {took:.1f} s", measured)

    def wait_taken_over(self, arena: Arena, since: float) -> Moved:
        """Like `wait_moved`, for nodes that no longer take part: without a majority of controllers no leader is elected."""
        voters = _ensemble.voters(arena.cluster.view())
        lost = len(set(voters) - self.names) * 2 <= len(voters)
        if lost and self.names & set(voters) and _ensemble.there(arena.cluster.view()):
            return Moved(*_ensemble.without_quorum(arena, self.names))
        if (self.led or self.controller) and lost and self.left:
            return Moved(
                True, f"no majority of controllers is left to elect a leader of {self._led_names()}", {}
            )
        return self.wait_moved(arena, since)

    def _elsewhere(self, arena: Arena) -> list[str] | None:
        """Return the new leaders, in the order of `led`, then the controller, then ZooKeeper; None until all have moved."""
        view = arena.cluster.view()
        places: list[str] = []
        try:
            if self.led:
                now = {state.partition: state for state in view.partitions(arena.topic)}
                for before in self.led:
                    leader = now[before.partition].leader
                    others = set(before.in_sync) - self.names
                    if leader in self.names or (leader is None and others):
                        return None
                    places.append(leader or "no broker")
            if self.controller is not None:
                active = view.active_controller()
                if active in self.names:
                    return None
                places.append(active)
            if self.zookeeper is not None:
                leading = _ensemble.leader(view)
                if leading is None or leading in self.names:
                    return None
                places.append(leading)
        except (ClusterError, KeyError):  # no broker answers for the moment
            return None
        return places

    def _move(self, places: Sequence[str]) -> str:
        if self.led:
            first = self.led[0]
            more = f" (and {len(self.led) - 1} more)" if len(self.led) > 1 else ""
            return f"leader of {first.topic}-{first.partition}{more} moved from {first.leader} to {places[0]}"
        if self.controller is not None:
            return f"active controller moved from {self.controller} to {places[0]}"
        return f"leader of the ZooKeeper ensemble moved from {self.zookeeper} to {places[0]}"

    def _led_names(self) -> str:
        names = [f"{state.topic}-{state.partition}" for state in self.led]
        names += ["the controller quorum"] if self.controller else []
        names += ["the ZooKeeper ensemble"] if self.zookeeper else []
        return ", ".join(names)


def names_in_cluster(arena: Arena, nodes: Sequence[Node]) -> list[str]:
    """Return the names of the nodes that belong to the cluster; the others are workers, which lead nothing."""
    own = {node.name for node in arena.cluster.nodes()}
    return [node.name for node in nodes if node.name in own]


def not_running(nodes: Sequence[Killable]) -> str | None:
    """Name the nodes whose process has ended; None if all run."""
    names = [node.name for node in nodes if not node.running()]
    return f"{', '.join(names)} not running" if names else None


def wait_whole(arena: Arena, names: Collection[str], also: Callable[[], str | None], what: str) -> Healing:
    """Wait until `also` has no complaint, all brokers are registered and all copies in sync.

    `what` states, for the proof, that `also` has no complaint.
    """
    begun, limit_s = time.monotonic(), arena.patience * HEAL_LIMIT_S
    last = "not checked yet"

    def whole() -> bool:
        nonlocal last
        last = also() or _missing(arena, names) or ""
        return not last

    try:
        wait_until(whole, limit_s, "", every_s=_ASK_EVERY_S)
    except WaitTimeout:
        return Healing(False, f"not whole after {limit_s:g} s: {last}", {})
    took = time.monotonic() - begun
    proof = (
        f"{', '.join(sorted(names))}: {what}, and its copies of {arena.topic} are in sync, after {took:.1f} s"
    )
    return Healing(True, proof, {"healed_s": round(took, 3)})


def _missing(arena: Arena, names: Collection[str]) -> str | None:
    if not {node.name for node in arena.cluster.nodes()} & set(names):
        return None  # only workers were hit, so the cluster has nothing to heal
    view = arena.cluster.view()
    try:
        states = view.partitions(arena.topic)
        registered = view.registered_brokers()
        view.active_controller()
    except ClusterError as error:
        return str(error)
    if ill := _ensemble.complaint(arena.cluster, names):
        return ill
    copies = {name for state in states for name in state.replicas}
    if away := sorted((copies & set(names)) - set(registered)):
        return f"{', '.join(away)} not registered"
    for state in states:
        if set(state.in_sync) != set(state.replicas) or state.leader is None:
            there = ", ".join(state.in_sync) or "none"
            return f"{state.topic}-{state.partition} has leader {state.leader} and in sync {there}"
    return None


def probe_links(node: Severable, links: Sequence[Link]) -> dict[Link, Mapping[Direction, bool]]:
    return probe_all(dict.fromkeys(links, node))


def probe_all(links: Mapping[Link, Severable]) -> dict[Link, Mapping[Direction, bool]]:
    """Probe links in parallel, each by its node: the probe of a cut link takes its whole time limit."""
    with ThreadPoolExecutor(max_workers=min(_PROBES_AT_ONCE, max(1, len(links)))) as pool:
        return dict(zip(links, pool.map(lambda link: links[link].passes(link), links), strict=True))
