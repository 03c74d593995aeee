"""Cut and shape links, and prove with probes what passes through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from harness.clusters.links.dialects import KAFKA, Speech, speech_of
from harness.clusters.links.mesh import Mesh, Port, Route
from harness.clusters.links.probe import closes_on_nonsense, listens, long_question, talk
from harness.clusters.links.toxiproxy import Toxiproxy
from harness.contracts import Cut, Direction, Lane, Link, Questions, Talk, Toxic
from harness.errors import FaultError
from harness.kafka.protocol import raw_client, zookeeper
from harness.kafka.protocol.security import Secured, Security, security_of

PROBE_LIMIT_S = 1.0
SECURED_PROBE_LIMIT_S = 3.0  # six round trips instead of two, and work for both sides
_STREAMS = {
    Direction.BOTH: ("upstream", "downstream"),
    Direction.REQUESTS: ("upstream",),
    Direction.ANSWERS: ("downstream",),
}
_HEARD = {Direction.REQUESTS: True, Direction.ANSWERS: False}
# No byte passes in the direction of the stream; connections stay open until the toxic is removed.
_BLACK_HOLE = ("timeout", {"timeout": 0})


class Links:
    """All links of a cluster. Each change is recorded under the name of its maker, so that several makers can work on
    one link and each undoes only its own changes. `security` is for probes on the client lanes.
    """

    def __init__(self, mesh: Mesh, toxiproxy: Toxiproxy, security: Security | None = None) -> None:
        self._mesh = mesh
        self._security = security
        self._toxiproxy = toxiproxy
        self._routes: dict[Link, list[Route]] = {}
        for route in mesh.routes():
            self._routes.setdefault(route.link, []).append(route)
        self._made: dict[str, list[tuple[str, str]]] = {}

    def of(self, name: str) -> Sequence[Link]:
        return self._mesh.links(name)

    def shapeable(self, name: str) -> Sequence[Link]:
        """Return the node's links that accept toxics."""
        return self.of(name)

    def sever(self, cuts: Sequence[Cut], by: str) -> None:
        kind, attributes = _BLACK_HOLE
        self.shape([(cut.link, Toxic(kind, attributes, cut.direction)) for cut in cuts], by)

    def shape(self, toxics: Sequence[tuple[Link, Toxic]], by: str) -> None:
        for link, toxic in toxics:
            for proxy in (route.proxy for route in self._routes_of(link)):
                for stream in _STREAMS[toxic.direction]:
                    name = f"{by}-{toxic.kind}-{stream}"
                    self._made.setdefault(by, []).append((proxy, name))
                    self._toxiproxy.add(proxy, name, toxic.kind, stream, toxic.attributes)

    def take_back(self, by: str) -> None:
        """Undo every change made under this name, last first, as one toxic may rely on another."""
        made = self._made.get(by, [])
        while made:
            self._toxiproxy.remove(*made[-1])
            made.pop()
        self._made.pop(by, None)

    def doers(self) -> list[str]:
        """Return the names under which changes are in place now."""
        return list(self._made)

    def passes(self, link: Link) -> Mapping[Direction, bool]:
        probes = [self._probe(route) for route in self._routes_of(link)]
        each_way = {way: all(probe[way] for probe in probes) for way in probes[0]}
        return {**each_way, Direction.BOTH: all(each_way.values())}

    def talk(self, link: Link, questions: Questions) -> Talk:
        route = self._route(link)
        return talk(self._address(route), questions, speech_of(route.port))

    def long_question(
        self, link: Link, topic: str, partition: int, wait_s: float
    ) -> AbstractContextManager[Callable[[float], bool]]:
        return long_question(self._address(self._route(link)), topic, partition, wait_s)

    def retarget(self, link: Link, upstream: str | None) -> None:
        """Route the link's traffic through another address; None restores its own route."""
        route = self._route(link)
        self._toxiproxy.retarget(route.proxy, upstream or route.upstream)

    def retargeted(self) -> dict[Link, str]:
        """Return the links that Toxiproxy leads to another address than their own, with that address."""
        now = self._toxiproxy.upstreams()
        return {
            route.link: now[route.proxy]
            for route in map(self._route, self._routes)
            if now.get(route.proxy, route.upstream) != route.upstream
        }

    def residue(self) -> list[str]:
        """List the toxics in place, and the proxies that lead to another address."""
        elsewhere = [f"{link} leads to {where}" for link, where in self.retargeted().items()]
        return [*self._toxiproxy.toxics(), *elsewhere]

    def _probe(self, route: Route) -> dict[Direction, bool]:
        """Probe once, and for ZooKeeper again if only requests seemed to arrive.

        A ZooKeeper server that stops leading or following closes all connections, whatever it received. So only two
        closed connections show that requests arrive. A server that does not lead does not listen on its port for
        followers, before the probe or after it: there only Toxiproxy's state is known.
        """
        of_followers = route.port is Port.ZOOKEEPER_PEER
        place = (_split(route.upstream)[0], route.port)
        if of_followers and not listens(place, PROBE_LIMIT_S):
            return self._toxiproxy_state(route)
        passes = self._probe_once(route)
        if passes == _HEARD and speech_of(route.port) is not KAFKA:
            passes = self._probe_once(route)
        if of_followers and not listens(place, PROBE_LIMIT_S):
            return self._toxiproxy_state(route)
        return passes

    def _toxiproxy_state(self, route: Route) -> dict[Direction, bool]:
        cuts = self._toxiproxy.cuts(route.proxy)
        return {Direction.REQUESTS: "upstream" not in cuts, Direction.ANSWERS: "downstream" not in cuts}

    def _probe_once(self, route: Route) -> dict[Direction, bool]:
        """Return the directions that pass. A round trip shows both. Without one, nonsense distinguishes them: when it
        arrives, the server closes the connection, and Toxiproxy passes that on through a cut. While requests are cut
        there is nothing to answer, so only then does Toxiproxy's state decide for the answers.
        """
        address, speech = self._address(route), speech_of(route.port)
        limit_s = SECURED_PROBE_LIMIT_S if security_of(address) is not None else PROBE_LIMIT_S
        try:
            speech.ask(address, limit_s)
            return {Direction.REQUESTS: True, Direction.ANSWERS: True}
        except raw_client.UnansweredError:
            pass
        except zookeeper.MuteError:  # if a server is there, it has received the question
            return {Direction.REQUESTS: _answers(route.upstream, speech), Direction.ANSWERS: False}
        except raw_client.WireError:  # closed at once: the proxy has no server to connect to
            return {Direction.REQUESTS: False, Direction.ANSWERS: False}
        if closes_on_nonsense(address, limit_s, speech):
            return dict(_HEARD)
        return {**self._toxiproxy_state(route), Direction.REQUESTS: False}

    def _route(self, link: Link) -> Route:
        """Return the route that probes use; a link between ZooKeeper servers has a second route."""
        return self._routes_of(link)[0]

    def _routes_of(self, link: Link) -> Sequence[Route]:
        try:
            return self._routes[link]
        except KeyError:
            raise FaultError(f"no link {link}; there are: {', '.join(map(str, self._routes))}") from None

    def _address(self, route: Route) -> raw_client.Address:
        of_clients = route.link.source in list(Lane)
        return Secured.of(_split(route.listen), self._security if of_clients else None)


def _split(place: str) -> raw_client.Address:
    host, port = place.split(":")
    return host, int(port)


def _answers(place: str, speech: Speech) -> bool:
    """Return whether the server answers when it is asked directly, without the proxy."""
    try:
        speech.ask(_split(place), PROBE_LIMIT_S)
    except raw_client.WireError:
        return False
    return True
