"""The link mesh as data: the address of each node, and the proxy of each link.

Every node listens on its own address. Every *link* has its own proxy address, and each node gets a
hosts file in which its peers' names are the proxies of *its* links to them. Nothing here has an effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from harness.contracts import Lane, Link


class Port(IntEnum):
    """Ports, the same on every node, as each has its own address; unusual ones, as 0.0.0.0:9092 is often taken."""

    TOXIPROXY = 21090
    INTERNAL = 21091
    CONTROL = 21092
    CONTROLLER = 21093
    PRODUCE = 21094
    CONSUME = 21095
    HOLDER = 21098  # requests to be held (harness.clusters.links.request_holder)
    HOLDER_CONTROL = 21099
    ZOOKEEPER = 21100
    ZOOKEEPER_ELECTION = 21101
    ZOOKEEPER_PEER = 21102  # of the leader, for its followers
    ZOOKEEPER_GATE = 21103  # where followers wait for the leader (harness.clusters.links.follower_gate)


LANE_PORTS = {Lane.CONTROL: Port.CONTROL, Lane.PRODUCE: Port.PRODUCE, Lane.CONSUME: Port.CONSUME}
_ENSEMBLE_PORTS = (Port.ZOOKEEPER_ELECTION, Port.ZOOKEEPER_PEER)
_LANE_OCTETS = {Lane.PRODUCE: 2, Lane.CONSUME: 3}
_FIRST_CONTROLLER_ID = 101
_FIRST_ZOOKEEPER_ID = 201


@dataclass(frozen=True)
class Member:
    """One server: its name, id and roles."""

    name: str
    id: int
    broker: bool
    controller: bool
    zookeeper: bool = False

    @property
    def place(self) -> int:
        """The server's number among its kind, as in its name."""
        return int(self.name.rpartition("-")[2])


@dataclass(frozen=True)
class Route:
    """One proxy: each link has one for each port."""

    link: Link
    port: Port
    listen: str
    upstream: str

    @property
    def proxy(self) -> str:
        return f"{self.link.source}.{self.link.destination}.{self.port.name.lower()}"


def ways(source: Member, peer: Member) -> list[tuple[Link, tuple[Port, ...]]]:
    """Return the links from one node to another, each with its ports there; probes use the first."""
    found: list[tuple[Link, tuple[Port, ...]]] = []
    if peer is source:
        return found
    if source.broker and peer.broker:
        found.append((Link(source.name, peer.name), (Port.INTERNAL,)))
    if peer.controller:
        found.append((Link(source.name, peer.name, controller=True), (Port.CONTROLLER,)))
    if peer.zookeeper:
        link = Link(source.name, peer.name, zookeeper=True)
        found.append((link, (Port.ZOOKEEPER,) if source.broker else _ENSEMBLE_PORTS))
    return found


def members(brokers: int, controllers: int, combined: bool) -> tuple[Member, ...]:
    if combined:
        return tuple(Member(f"broker-{n}", n, True, True) for n in range(1, brokers + 1))
    own = [Member(f"broker-{n}", n, True, False) for n in range(1, brokers + 1)]
    first = _FIRST_CONTROLLER_ID
    return (*own, *(Member(f"controller-{n + 1}", first + n, False, True) for n in range(controllers)))


def members_with_zookeeper(brokers: int, zookeepers: int) -> tuple[Member, ...]:
    first = _FIRST_ZOOKEEPER_ID
    return (
        *(Member(f"broker-{n}", n, True, False) for n in range(1, brokers + 1)),
        *(Member(f"zookeeper-{n + 1}", first + n, False, False, zookeeper=True) for n in range(zookeepers)),
    )


@dataclass(frozen=True)
class Mesh:
    block: int
    members: tuple[Member, ...]

    def address(self, member: Member) -> str:
        """Return the node's own address, without a proxy."""
        return f"127.{self.block}.1.{member.id}"

    def listen_address(self, member: Member) -> str:
        """Return the address that the server binds; it differs from `address` where traffic is forwarded to it."""
        return self.address(member)

    def toxiproxy_address(self) -> str:
        return f"127.{self.block}.0.2"

    def lane_address(self, lane: Lane, member: Member) -> str:
        """Return the node's address for clients of a lane: direct on the control lane, otherwise a proxy."""
        if lane is Lane.CONTROL:
            return self.address(member)
        return f"127.{self.block}.{_LANE_OCTETS[lane]}.{member.id}"

    def bootstrap_servers(self, lane: Lane) -> str:
        return ",".join(
            f"{self.lane_address(lane, m)}:{LANE_PORTS[lane]:d}" for m in self.members if m.broker
        )

    def quorum_voters(self) -> str:
        return ",".join(f"{m.id}@{m.name}:{Port.CONTROLLER:d}" for m in self.members if m.controller)

    def zookeeper_connect(self) -> str:
        return ",".join(f"{m.name}:{Port.ZOOKEEPER:d}" for m in self.members if m.zookeeper)

    def hosts(self, member: Member, own_host: str) -> str:
        """Return the hosts file of one node's JVM. It replaces DNS there, so it includes the machine itself."""
        lines = ["127.0.0.1 localhost", f"127.0.0.1 {own_host}"]
        for peer in self.members:
            place = self.address(peer) if peer is member else self._link_address(member, peer)
            lines.append(f"{place} {peer.name}")
        return "\n".join(lines) + "\n"

    def routes(self) -> tuple[Route, ...]:
        """Return every proxy: broker to broker, node to controller or ZooKeeper, client lane to broker."""
        found: list[Route] = []
        for source in self.members:
            for peer in self.members:
                place = self._link_address(source, peer)
                for link, ports in ways(source, peer):
                    found += [self._route(link, port, place, peer) for port in ports]
        for lane in _LANE_OCTETS:
            for peer in self.members:
                if peer.broker:
                    place = self.lane_address(lane, peer)
                    found.append(self._route(Link(lane.value, peer.name), LANE_PORTS[lane], place, peer))
        return tuple(found)

    def links(self, name: str) -> Sequence[Link]:
        """Return every link that starts or ends at the node, client lanes included."""
        links = dict.fromkeys(route.link for route in self.routes())
        return [link for link in links if name in (link.source, link.destination)]

    def _link_address(self, source: Member, destination: Member) -> str:
        return f"127.{self.block}.{10 + source.id}.{destination.id}"

    def _route(self, link: Link, port: Port, place: str, destination: Member) -> Route:
        behind = Port.ZOOKEEPER_GATE if port is Port.ZOOKEEPER_PEER else port
        return Route(link, port, f"{place}:{port:d}", f"{self.address(destination)}:{behind:d}")
