"""Cutting and shaping links, and proving by probes what gets through them and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from harness import wire
from harness.clusters._mesh import Mesh, Route
from harness.clusters._talk import closes_on_nonsense, long_question, talk
from harness.clusters._toxiproxy import Toxiproxy
from harness.contracts import Cut, Direction, Lane, Link, Questions, Talk, Toxic
from harness.errors import FaultError
from harness.wire_security import Secured, Security, security_of

PROBE_LIMIT_S = 1.0
SECURED_PROBE_LIMIT_S = 3.0  # six round trips instead of two, and work for both sides
_STREAMS = {
    Direction.BOTH: ("upstream", "downstream"),
    Direction.REQUESTS: ("upstream",),
    Direction.ANSWERS: ("downstream",),
}
# No byte gets through in the direction of the stream; connections stay open until it is taken away.
_BLACK_HOLE = ("timeout", {"timeout": 0})


class Links:
    """All links of a cluster. What is done to them is remembered under the name of who did it, so that several
    may work on one link and each takes back its own. `security` is how probes get in on the lanes of clients.
    """

    def __init__(self, mesh: Mesh, toxiproxy: Toxiproxy, security: Security | None = None) -> None:
        self._mesh = mesh
        self._security = security
        self._toxiproxy = toxiproxy
        self._routes = {route.link: route for route in mesh.routes()}
        self._made: dict[str, list[tuple[str, str]]] = {}

    def of(self, name: str) -> Sequence[Link]:
        return self._mesh.links(name)

    def sever(self, cuts: Sequence[Cut], by: str) -> None:
        kind, attributes = _BLACK_HOLE
        self.shape([(cut.link, Toxic(kind, attributes, cut.direction)) for cut in cuts], by)

    def shape(self, toxics: Sequence[tuple[Link, Toxic]], by: str) -> None:
        for link, toxic in toxics:
            proxy = self._route(link).proxy
            for stream in _STREAMS[toxic.direction]:
                name = f"{by}-{toxic.kind}-{stream}"
                self._made.setdefault(by, []).append((proxy, name))
                self._toxiproxy.add(proxy, name, toxic.kind, stream, toxic.attributes)

    def take_back(self, by: str) -> None:
        """Everything that was done under this name; last first, as one toxic may have relied on another."""
        made = self._made.get(by, [])
        while made:
            self._toxiproxy.remove(*made[-1])
            made.pop()
        self._made.pop(by, None)

    def doers(self) -> list[str]:
        """Under which names something is done now."""
        return list(self._made)

    def passes(self, link: Link) -> Mapping[Direction, bool]:
        each_way = self._probe(self._route(link))
        return {**each_way, Direction.BOTH: all(each_way.values())}

    def talk(self, link: Link, questions: Questions) -> Talk:
        return talk(self._address(self._route(link)), questions)

    def long_question(
        self, link: Link, topic: str, partition: int, wait_s: float
    ) -> AbstractContextManager[Callable[[float], bool]]:
        return long_question(self._address(self._route(link)), topic, partition, wait_s)

    def retarget(self, link: Link, upstream: str | None) -> None:
        """Let the link's traffic pass another address on its way; None: let it go its own way again."""
        route = self._route(link)
        self._toxiproxy.retarget(route.proxy, upstream or route.upstream)

    def retargeted(self) -> dict[Link, str]:
        """Links that lead elsewhere than they were made for, and where, as Toxiproxy tells."""
        now = self._toxiproxy.upstreams()
        return {
            route.link: now[route.proxy]
            for route in self._routes.values()
            if now.get(route.proxy, route.upstream) != route.upstream
        }

    def residue(self) -> list[str]:
        """Toxics that are there now, and proxies that lead elsewhere."""
        elsewhere = [f"{link} leads to {where}" for link, where in self.retargeted().items()]
        return [*self._toxiproxy.toxics(), *elsewhere]

    def _probe(self, route: Route) -> dict[Direction, bool]:
        """A round trip shows both ways. Without one, nonsense tells the ways apart: when it arrives, the server
        closes the connection, and Toxiproxy passes that on through a cut. While requests are cut there is
        nothing to answer, so only then is Toxiproxy's own word taken for the answers.
        """
        address = self._address(route)
        limit_s = SECURED_PROBE_LIMIT_S if security_of(address) is not None else PROBE_LIMIT_S
        try:
            wire.api_versions(address, limit_s)
            return {Direction.REQUESTS: True, Direction.ANSWERS: True}
        except wire.UnansweredError:
            pass
        except wire.WireError:  # closed at once: the proxy has nobody to connect to
            return {Direction.REQUESTS: False, Direction.ANSWERS: False}
        if closes_on_nonsense(address, limit_s):
            return {Direction.REQUESTS: True, Direction.ANSWERS: False}
        answers_cut = "downstream" in self._toxiproxy.cuts(route.proxy)
        return {Direction.REQUESTS: False, Direction.ANSWERS: not answers_cut}

    def _route(self, link: Link) -> Route:
        try:
            return self._routes[link]
        except KeyError:
            raise FaultError(f"no link {link}; there are: {', '.join(map(str, self._routes))}") from None

    def _address(self, route: Route) -> wire.Address:
        host, port = route.listen.split(":")
        of_clients = route.link.source in list(Lane)
        return Secured.of((host, int(port)), self._security if of_clients else None)
