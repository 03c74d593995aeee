"""Cutting and shaping links, and proving by probes what gets through them and how."""

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
        self._routes: dict[Link, list[Route]] = {}
        for route in mesh.routes():
            self._routes.setdefault(route.link, []).append(route)
        self._made: dict[str, list[tuple[str, str]]] = {}

    def of(self, name: str) -> Sequence[Link]:
        return self._mesh.links(name)

    def shapeable(self, name: str) -> Sequence[Link]:
        """Those of the node that toxics can be put on."""
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
        """Let the link's traffic pass another address on its way; None: let it go its own way again."""
        route = self._route(link)
        self._toxiproxy.retarget(route.proxy, upstream or route.upstream)

    def retargeted(self) -> dict[Link, str]:
        """Links that lead elsewhere than they were made for, and where, as Toxiproxy tells."""
        now = self._toxiproxy.upstreams()
        return {
            route.link: now[route.proxy]
            for route in map(self._route, self._routes)
            if now.get(route.proxy, route.upstream) != route.upstream
        }

    def residue(self) -> list[str]:
        """Toxics that are there now, and proxies that lead elsewhere."""
        elsewhere = [f"{link} leads to {where}" for link, where in self.retargeted().items()]
        return [*self._toxiproxy.toxics(), *elsewhere]

    def _probe(self, route: Route) -> dict[Direction, bool]:
        """A ZooKeeper server that stops to lead or follow closes all connections, whatever it has heard. So there it
        takes two that are closed to show that requests arrive. Where followers come to it, nobody listens when it does
        not lead, before the probe or after it: there Toxiproxy's own word is all there is.
        """
        of_followers = route.port is Port.ZOOKEEPER_PEER
        place = (_split(route.upstream)[0], route.port)
        if of_followers and not listens(place, PROBE_LIMIT_S):
            return self._word(route)
        told = self._probe_once(route)
        if told == _HEARD and speech_of(route.port) is not KAFKA:
            told = self._probe_once(route)
        if of_followers and not listens(place, PROBE_LIMIT_S):
            return self._word(route)
        return told

    def _word(self, route: Route) -> dict[Direction, bool]:
        cuts = self._toxiproxy.cuts(route.proxy)
        return {Direction.REQUESTS: "upstream" not in cuts, Direction.ANSWERS: "downstream" not in cuts}

    def _probe_once(self, route: Route) -> dict[Direction, bool]:
        """A round trip shows both ways. Without one, nonsense tells the ways apart: when it arrives, the server
        closes the connection, and Toxiproxy passes that on through a cut. While requests are cut there is
        nothing to answer, so only then is Toxiproxy's own word taken for the answers.
        """
        address, speech = self._address(route), speech_of(route.port)
        limit_s = SECURED_PROBE_LIMIT_S if security_of(address) is not None else PROBE_LIMIT_S
        try:
            speech.ask(address, limit_s)
            return {Direction.REQUESTS: True, Direction.ANSWERS: True}
        except raw_client.UnansweredError:
            pass
        except zookeeper.MuteError:  # with somebody there, it has heard the question
            return {Direction.REQUESTS: _answers(route.upstream, speech), Direction.ANSWERS: False}
        except raw_client.WireError:  # closed at once: the proxy has nobody to connect to
            return {Direction.REQUESTS: False, Direction.ANSWERS: False}
        if closes_on_nonsense(address, limit_s, speech):
            return dict(_HEARD)
        return {**self._word(route), Direction.REQUESTS: False}

    def _route(self, link: Link) -> Route:
        """The way that probes take; a link between ZooKeeper servers has another one beside it."""
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
    """Whether the server answers when it is asked past the proxy."""
    try:
        speech.ask(_split(place), PROBE_LIMIT_S)
    except raw_client.WireError:
        return False
    return True
