"""Cutting links and proving by probes what gets through them."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from harness import wire
from harness.clusters._mesh import Mesh, Route
from harness.clusters._toxiproxy import Toxiproxy
from harness.contracts import Cut, Direction, Link
from harness.errors import FaultError

PROBE_LIMIT_S = 1.0
_STREAMS = {
    Direction.BOTH: ("upstream", "downstream"),
    Direction.REQUESTS: ("upstream",),
    Direction.ANSWERS: ("downstream",),
}
# A size that no request has: a server that reads it closes the connection at once.
_NONSENSE = b"\xff\xff\xff\xff"


class Links:
    """All links of a cluster. A cut is remembered under the name of the node through which it was made."""

    def __init__(self, mesh: Mesh, toxiproxy: Toxiproxy) -> None:
        self._mesh = mesh
        self._toxiproxy = toxiproxy
        self._routes: dict[Link, list[Route]] = {}
        for route in mesh.routes():
            self._routes.setdefault(route.link, []).append(route)
        self._made: dict[str, set[tuple[str, str]]] = {}

    def of(self, name: str) -> Sequence[Link]:
        return self._mesh.links(name)

    def sever(self, cuts: Sequence[Cut], by: str) -> None:
        for cut in cuts:
            for route in self._routes_of(cut.link):
                for stream in _STREAMS[cut.direction]:
                    toxic = f"{stream}-by-{by}"  # two nodes may cut one link; each takes back its own
                    self._made.setdefault(by, set()).add((route.proxy, toxic))
                    self._toxiproxy.cut(route.proxy, stream, toxic)

    def mend(self, by: str) -> None:
        made = self._made.get(by, set())
        for proxy, toxic in sorted(made):
            self._toxiproxy.mend(proxy, toxic)
            made.discard((proxy, toxic))

    def passes(self, link: Link) -> Mapping[Direction, bool]:
        """Asks through every proxy of the link; each way passes if it does so through all of them."""
        answers = [self._probe(route) for route in self._routes_of(link)]
        each_way = {way: all(a[way] for a in answers) for way in (Direction.REQUESTS, Direction.ANSWERS)}
        return {**each_way, Direction.BOTH: all(each_way.values())}

    def residue(self) -> list[str]:
        """Toxics that are there now."""
        return self._toxiproxy.toxics()

    def _probe(self, route: Route) -> dict[Direction, bool]:
        """A round trip shows both ways. Without one, nonsense tells the ways apart: when it arrives, the server
        closes the connection, and Toxiproxy passes that on through a cut. While requests are cut there is
        nothing to answer, so only then is Toxiproxy's own word taken for the answers.
        """
        host, port = route.listen.split(":")
        address = (host, int(port))
        try:
            wire.api_versions(address, PROBE_LIMIT_S)
            return {Direction.REQUESTS: True, Direction.ANSWERS: True}
        except wire.UnansweredError:
            pass
        except wire.WireError:  # closed at once: the proxy has nobody to connect to
            return {Direction.REQUESTS: False, Direction.ANSWERS: False}
        if _closes_on_nonsense(address):
            return {Direction.REQUESTS: True, Direction.ANSWERS: False}
        answers_cut = "downstream" in self._toxiproxy.cuts(route.proxy)
        return {Direction.REQUESTS: False, Direction.ANSWERS: not answers_cut}

    def _routes_of(self, link: Link) -> list[Route]:
        try:
            return self._routes[link]
        except KeyError:
            raise FaultError(f"no link {link}; there are: {', '.join(map(str, self._routes))}") from None


def _closes_on_nonsense(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=PROBE_LIMIT_S) as connection:
            connection.sendall(_NONSENSE)
            return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True
    except OSError:
        return False
