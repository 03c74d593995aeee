"""The links that a fault affects: choices among all links of a cluster, and shapes of partitions. Nothing here has an effect.

A partition is given as the pairs of nodes that do not see each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from harness.contracts import Lane, Link
from harness.errors import FaultError, UsageError

Pairs = frozenset[frozenset[str]]
_CLIENTS = {lane.value for lane in Lane}


def of_clients(link: Link) -> bool:
    return link.source in _CLIENTS


def between_brokers(link: Link) -> bool:
    return not with_controllers(link) and not of_clients(link)


def with_controllers(link: Link) -> bool:
    """Return whether the link leads to a controller, or to ZooKeeper, which takes that part where the cluster has it."""
    return link.controller or link.zookeeper


LANES: Mapping[str, Callable[[Link], bool]] = {
    "all": lambda link: True,
    "clients": of_clients,
    "producers": lambda link: link.source == Lane.PRODUCE.value,
    "replication": between_brokers,
    "controllers": with_controllers,
}


def check_lanes(fault: str, lanes: str) -> None:
    if lanes not in LANES:
        raise UsageError(f"{fault}: unknown lanes {lanes!r}; choose one of {', '.join(LANES)}")


@dataclass(frozen=True)
class Wiring:
    """All nodes of a cluster in their order, and every link once."""

    names: tuple[str, ...]
    links: tuple[Link, ...]

    @classmethod
    def of(cls, names: Iterable[str], links: Iterable[Link]) -> Wiring:
        return cls(tuple(dict.fromkeys(names)), tuple(dict.fromkeys(links)))

    @property
    def controllers(self) -> frozenset[str]:
        """The nodes of which a majority must see each other: controllers, or ZooKeeper servers."""
        return frozenset(link.destination for link in self.links if with_controllers(link))

    @property
    def brokers(self) -> frozenset[str]:
        """The nodes that clients connect to."""
        return frozenset(link.destination for link in self.links if of_clients(link))

    def kinds(self) -> list[list[str]]:
        """Return the brokers, combined nodes included, and the other nodes, each in their order."""
        brokers = self.brokers
        return [
            [name for name in self.names if name in brokers],
            [name for name in self.names if name not in brokers],
        ]

    def has_quorum(self, names: Collection[str]) -> bool:
        """Return whether these nodes alone can have an active controller; true if no controller is known."""
        there = self.controllers
        return len(there & set(names)) * 2 > len(there) or not there

    def chosen(self, targets: Collection[str], lanes: str) -> list[Link]:
        wanted = LANES[lanes]
        return [
            link for link in self.links if wanted(link) and {link.source, link.destination} & set(targets)
        ]


def side(wiring: Wiring, targets: Collection[str]) -> frozenset[str]:
    """Return the targets and the nodes that follow them, up to half of each kind."""
    chosen = set(targets)
    for kind in wiring.kinds():
        chosen |= set(_fill(kind, [name for name in kind if name in targets], len(kind) // 2))
    return frozenset(chosen)


def _fill(ring: Sequence[str], first: Sequence[str], size: int) -> list[str]:
    """Return up to `size` nodes of a ring: all of `first`, then the nodes that follow the first of them."""
    start = ring.index(first[0]) if first else 0
    others = [name for name in (*ring[start:], *ring[:start]) if name not in first]
    return [*first, *others][: max(size, len(first))]


def isolate(wiring: Wiring, targets: Collection[str]) -> Pairs:
    """No node sees a target, and no target sees another target."""
    return _where(wiring.names, lambda a, b: a in targets or b in targets)


def halves(wiring: Wiring, targets: Collection[str]) -> Pairs:
    near = side(wiring, targets)
    return _where(wiring.names, lambda a, b: (a in near) != (b in near))


def bridge(wiring: Wiring, targets: Collection[str]) -> Pairs:
    """The other nodes are split into two halves of each kind; the targets see all of them."""
    others = Wiring(tuple(name for name in wiring.names if name not in targets), wiring.links)
    near = side(others, [])
    if not near or len(near) == len(others.names):
        raise FaultError(
            f"a bridge needs nodes on both sides; besides the target there are {len(others.names)}"
        )
    return _where(others.names, lambda a, b: (a in near) != (b in near))


def ring(wiring: Wiring, targets: Collection[str]) -> Pairs:
    """Each node sees just enough neighbours on either side, in the order of the nodes, to form a majority.

    In a ring of three that would be all nodes. There only the first target and the node after it do not see each
    other, so that the majorities still differ.
    """
    names = wiring.names
    if len(names) < 3:
        raise FaultError(f"a ring needs at least 3 nodes; there are {len(names)}")
    if len(names) == 3:
        first = next((at for at, name in enumerate(names) if name in targets), 0)
        return frozenset({frozenset({names[first], names[(first + 1) % 3]})})
    reach = (len(names) // 2 + 1) // 2  # with the node itself 2 * reach + 1 are at least a majority
    place = {name: at for at, name in enumerate(names)}

    def far(a: str, b: str) -> bool:
        apart = abs(place[a] - place[b])
        return min(apart, len(names) - apart) > reach

    return _where(names, far)


def _where(names: Iterable[str], apart: Callable[[str, str], bool]) -> Pairs:
    return frozenset(frozenset(pair) for pair in combinations(names, 2) if apart(*pair))
