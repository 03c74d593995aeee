"""Addresses of a cluster of containers: inside, on their own network, and outside, where the engine publishes them.

From outside it looks like a cluster of local processes: its own block of loopback addresses, one address for each node,
the same ports on all of them. So ports are reserved as long as the cluster runs, and stay after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.clusters.links.mesh import LANE_PORTS, Member, Mesh, Port, Route
from harness.contracts import Lane, Link

_TOXIPROXY_HOST = 2
_FIRST_HOST = 10
_LANES = (Lane.PRODUCE, Lane.CONSUME)
_LANE_PORTS_INSIDE = {Lane.PRODUCE: 22000, Lane.CONSUME: 23000}


@dataclass(frozen=True)
class ContainerMesh(Mesh):
    network: str = "10.0.0"  # its first three numbers

    def listen_address(self, member: Member) -> str:
        return f"{self.network}.{_FIRST_HOST + member.id}"

    def toxiproxy_listen_address(self) -> str:
        return f"{self.network}.{_TOXIPROXY_HOST}"

    def hosts(self, member: Member, own_host: str) -> str:
        lines = ["127.0.0.1 localhost", f"{self.listen_address(member)} {own_host}"]
        lines += [f"{self.listen_address(peer)} {peer.name}" for peer in self.members]
        return "\n".join(lines) + "\n"

    def routes(self) -> tuple[Route, ...]:
        """Return the client lanes: only these pass through a proxy."""
        return tuple(
            Route(
                Link(lane.value, member.name),
                LANE_PORTS[lane],
                f"{self.lane_address(lane, member)}:{LANE_PORTS[lane]:d}",
                f"{self.listen_address(member)}:{LANE_PORTS[lane]:d}",
            )
            for lane in _LANES
            for member in self.members
            if member.broker
        )

    def published(self, member: Member) -> dict[int, tuple[str, int]]:
        """Return a node's ports inside, each with its address outside."""
        ports = [Port.CONTROL] if member.broker else []
        ports += [Port.CONTROLLER] if member.controller else []
        ports += [Port.ZOOKEEPER] if member.zookeeper else []
        return {int(port): (self.address(member), int(port)) for port in ports}

    def proxy_ports(self) -> Mapping[str, int]:
        """The port of each proxy by its name; inside, all proxies share one address."""
        brokers = {member.name: member.id for member in self.members if member.broker}
        return {
            route.proxy: _LANE_PORTS_INSIDE[Lane(route.link.source)] + brokers[route.link.destination]
            for route in self.routes()
        }

    def published_by_toxiproxy(self) -> dict[int, tuple[str, int]]:
        found = {int(Port.TOXIPROXY): (self.toxiproxy_address(), int(Port.TOXIPROXY))}
        ports = self.proxy_ports()
        for route in self.routes():
            host, port = route.listen.split(":")
            found[ports[route.proxy]] = (host, int(port))
        return found
