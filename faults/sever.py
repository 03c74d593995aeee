"""Chosen links are cut, both ways or one way, and nothing else: bytes are dropped, connections stay open."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from faults import _shapes
from faults._actors import Actors, name_of_hold, severable
from faults._cases import Case
from faults._measure import Leadership, probe_all, wait_whole
from faults._shapes import Pairs, Wiring
from harness.contracts import (
    Arena,
    Bite,
    Cut,
    Direction,
    Healing,
    Lane,
    Link,
    Node,
    PeerSeverable,
    Severable,
    Shapeable,
)
from harness.errors import ClusterError, UsageError
from harness.targets import leader_of

# Shapes given by the pairs of nodes that no longer see each other; the last three affect the whole cluster.
PARTITIONS: Mapping[str, Callable[[Wiring, Collection[str]], Pairs]] = {
    "isolate": _shapes.isolate,
    "halves": _shapes.halves,
    "ring": _shapes.ring,
    "bridge": _shapes.bridge,
}
SHAPES = ("isolate", "replication", "answers", "halves", "ring", "bridge", "clients", "controllers")
_LANES_ONLY = ("answers", "clients")
_WHOLE_CLUSTER = ("halves", "ring", "bridge")
_WAY = "link mesh"
_ANSWERED_AFTER_S = 3.0  # after all cuts are made
_ONE_WAY = {
    Direction.BOTH: "",
    Direction.REQUESTS: " one way (requests; on {heard} links answers to questions from before the cut came through, "
    "on {others} only Toxiproxy's state shows that they would)",
    Direction.ANSWERS: " one way (answers; requests arrive)",
}


@dataclass(frozen=True)
class Sever:
    """Shapes at a target: `isolate` cuts all its links with other nodes, clients still reach it. `replication` cuts
    only links on which other nodes fetch from it. `answers` cuts only its answers to producers. `clients` cuts its
    links with producers and consumers. `controllers` cuts its links with controllers or ZooKeeper; brokers still see it.

    Shapes of the whole cluster: `halves`: two sides that do not see each other, the target on the smaller one. `ring`:
    each node sees a majority, no two the same majority. `bridge`: two sides, and only the target sees both.
    """

    shape: str = "isolate"
    direction: Direction = Direction.BOTH
    needs: ClassVar[type] = Severable
    ways: ClassVar[Mapping[str, str]] = {_WAY: "nothing"}
    bites_when: ClassVar[str] = (
        "probes fail on every cut link, and only in the cut direction; if other nodes can take over, they lead what "
        "the cut-off nodes led"
    )

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise UsageError(f"sever: unknown shape {self.shape!r}; choose one of {', '.join(SHAPES)}")
        if self.shape not in _LANES_ONLY:
            object.__setattr__(self, "needs", PeerSeverable)
        if self.shape == "answers" and self.direction is Direction.REQUESTS:
            raise UsageError("sever: shape 'answers' cuts answers, not requests; leave out direction")

    def cuts(self, wiring: Wiring, targets: Collection[str]) -> list[Cut]:
        """Return the links to cut, each with its direction."""
        if self.shape in PARTITIONS:
            apart = PARTITIONS[self.shape](wiring, targets)
            chosen = [link for link in wiring.links if frozenset((link.source, link.destination)) in apart]
        elif self.shape == "replication":
            chosen = [
                link
                for link in wiring.links
                if link.destination in targets and not _shapes.of_clients(link) and _fetches(link, wiring)
            ]
        elif self.shape == "answers":
            chosen = [link for link in wiring.chosen(targets, "clients") if link.source == Lane.PRODUCE.value]
        else:
            chosen = wiring.chosen(targets, self.shape)
        return [Cut(link, self._cut_way()) for link in chosen]

    def losers(self, wiring: Wiring, targets: Collection[str]) -> frozenset[str]:
        """Return the nodes that cannot lead any longer because the other nodes have the quorum; empty if not certain.

        A cut in one direction is enough: a broker whose heartbeats get no answers is fenced like one that sends none.
        """
        if self.shape not in ("isolate", "controllers", "halves"):
            return frozenset()
        if self._cut_way() is Direction.ANSWERS and any(link.zookeeper for link in wiring.links):
            return frozenset()  # each attempt to connect arrives and renews the session
        near = _shapes.side(wiring, targets) if self.shape == "halves" else frozenset(targets)
        far = frozenset(wiring.names) - near
        if wiring.has_quorum(far):
            return near
        return far if self.shape == "halves" and wiring.has_quorum(near) else frozenset()

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = severable(nodes)
        if not targets:
            yield Bite(False, "there was no node to cut off", way=_WAY)
            return
        actors = _actors(arena, targets)
        cuts = self.cuts(actors.wiring, actors.targets)
        losers = self.losers(actors.wiring, actors.targets)
        led = Leadership.of(arena, losers) if losers else None
        by = name_of_hold(self)
        acting = actors.at([cut.link for cut in cuts])
        with ExitStack() as undo:
            asked = self._ask_ahead(arena, actors, cuts, undo)
            for node, _links in acting:
                undo.callback(node.mend, by)
            begun = time.monotonic()
            for node, links in acting:
                node.sever([cut for cut in cuts if cut.link in links], by)
            open_ones = [answered for answered in asked if not answered(0.0)]
            yield self._bite(arena, actors, cuts, open_ones, led, begun)

    def _ask_ahead(
        self, arena: Arena, actors: Actors[Severable], cuts: Sequence[Cut], undo: ExitStack
    ) -> list[Callable[[float], bool]]:
        """Ask leaders, before requests are cut, questions that they answer after the cut: later none would arrive."""
        if self._cut_way() is not Direction.REQUESTS:
            return []
        led = {state.leader: state.partition for state in arena.cluster.view().partitions(arena.topic)}
        asked = []
        for link in (cut.link for cut in cuts):
            node = actors.actor(link)
            if isinstance(node, Shapeable) and not link.controller and link.destination in led:
                ahead = node.long_question(link, arena.topic, led[link.destination], _ANSWERED_AFTER_S)
                with suppress(ClusterError):  # a leader that does not answer anyway proves nothing
                    asked.append(undo.enter_context(ahead))
        return asked

    def _bite(
        self,
        arena: Arena,
        actors: Actors[Severable],
        cuts: Sequence[Cut],
        asked: Sequence[Callable[[float], bool]],
        led: Leadership | None,
        begun: float,
    ) -> Bite:
        of = ", ".join(actors.targets)
        if not cuts:
            return Bite(False, f"{of}: there is no link for {self} to cut", way=_WAY)
        passing = probe_all(actors.probes([cut.link for cut in cuts]))
        wrong = [str(cut.link) for cut in cuts if not _as_wanted(cut, passing[cut.link])]
        if wrong:
            return Bite(False, f"the cut has no effect, probes show otherwise: {', '.join(wrong)}", way=_WAY)
        heard = sum(answered(2 * _ANSWERED_AFTER_S) for answered in asked)
        if asked and not heard:
            return Bite(False, "answers are cut too: no question from before the cut was answered", way=_WAY)
        one_way = _ONE_WAY[self._cut_way()].format(heard=heard, others=len(cuts) - heard)
        whose = f"of {of}" if self.shape not in _WHOLE_CLUSTER else f"of the cluster ({self.shape} at {of})"
        proof = f"probes of {len(cuts)} link{'' if len(cuts) == 1 else 's'} {whose} fail{one_way}"
        measured = {"links_cut": float(len(cuts)), "links_left": float(len(actors.wiring.links) - len(cuts))}
        measured |= {"late_answers": float(heard)} if asked else {}
        if led is None:
            return Bite(True, proof, measured, _WAY)
        moved = led.wait_moved(arena, begun)
        return Bite(moved.moved, f"{proof}; {moved.proof}", {**measured, **moved.measured}, _WAY)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        actors = _actors(arena, severable(nodes))
        whole = self.shape in _WHOLE_CLUSTER
        links = actors.wiring.links if whole else actors.wiring.chosen(actors.targets, "all")

        def still_cut() -> str | None:
            dead = [str(k) for k, ways in probe_all(actors.probes(links)).items() if not all(ways.values())]
            return f"no answer through {', '.join(dead)}" if dead else None

        names = actors.wiring.names if whole else actors.targets
        return wait_whole(arena, names, still_cut, f"every link ({len(links)}) passes both ways")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "sever", "shape": self.shape, "direction": self.direction.value}

    def __str__(self) -> str:
        one_way = (
            [] if self.direction is Direction.BOTH or self.shape == "answers" else [self.direction.value]
        )
        shape = [] if self.shape == "isolate" and not one_way else [self.shape]
        return "-".join(["sever", *shape, *one_way])

    def _cut_way(self) -> Direction:
        return Direction.ANSWERS if self.shape == "answers" else self.direction


def _actors(arena: Arena, targets: Sequence[Severable]) -> Actors[Severable]:
    return Actors.of(targets, [node for node in arena.cluster.nodes() if isinstance(node, Severable)])


def _fetches(link: Link, wiring: Wiring) -> bool:
    """Return whether the source replicates over the link: partitions from a broker, metadata from a controller, and
    within a ZooKeeper ensemble the servers' data.
    """
    if link.zookeeper:
        return link.source not in wiring.brokers
    return not link.controller or link.destination not in wiring.brokers


def _as_wanted(cut: Cut, ways: Mapping[Direction, bool]) -> bool:
    """Return whether the cut direction is dead and, for a one-way cut, the other direction passes."""
    requests, answers = ways[Direction.REQUESTS], ways[Direction.ANSWERS]
    if cut.direction is Direction.BOTH:
        return not requests and not answers
    return (requests, answers) == (cut.direction is Direction.ANSWERS, cut.direction is Direction.REQUESTS)


cases = (
    Case(Sever(), leader_of(0)),
    Case(Sever(direction=Direction.REQUESTS), leader_of(0), name="sever-requests"),
    *(Case(Sever(shape), leader_of(0)) for shape in SHAPES if shape != "isolate"),
)
fault_class = Sever
