"""A cluster whose links are the real ones of the mesh, with a Toxiproxy in memory and no server behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from harness.clusters.base.options import PLAIN
from harness.clusters.links.links import Links
from harness.clusters.links.mesh import Mesh, Route, members
from harness.clusters.links.toxiproxy import Toxiproxy
from harness.clusters.powers.links import PeerLinked
from harness.clusters.processes.java import Jvm
from harness.clusters.processes.kafka_process import KafkaProcess
from harness.contracts import Direction, Ending, Link, Node, PartitionState, Questions, Talk
from harness.errors import ClusterError

TOPIC = "orders"
_QUESTION_BYTES, _ANSWER_BYTES = 28, 464


@dataclass(frozen=True)
class Added:
    kind: str
    stream: str
    attributes: Mapping[str, int] = field(hash=False)


@dataclass
class MemoryToxiproxy:
    """Remembers toxics; a `stubborn` one accepts them and does nothing."""

    added: dict[tuple[str, str], Added] = field(default_factory=dict)
    stubborn: bool = False
    room: int = 1000  # for toxics; then it fails

    def add(self, proxy: str, name: str, kind: str, stream: str, attributes: Mapping[str, int]) -> None:
        if len(self.added) >= self.room:
            raise ClusterError("Toxiproxy failed on purpose")
        self.added.setdefault((proxy, name), Added(kind, stream, attributes))

    def remove(self, proxy: str, name: str) -> None:
        self.added.pop((proxy, name), None)

    def upstreams(self) -> dict[str, str]:
        return {}

    def toxics(self) -> list[str]:
        return [f"toxic {name} on {proxy}" for proxy, name in sorted(self.added)]

    def at(self, proxy: str) -> list[Added]:
        return [] if self.stubborn else [toxic for (own, _), toxic in self.added.items() if own == proxy]


class MemoryLinks(Links):
    """Links whose probes are answered as the toxics would let them."""

    def __init__(self, mesh: Mesh, toxiproxy: MemoryToxiproxy) -> None:
        super().__init__(mesh, cast(Toxiproxy, toxiproxy))
        self._memory = toxiproxy
        self.answers_lost = False  # although the toxics would let them pass

    def _probe(self, route: Route) -> dict[Direction, bool]:
        cut = {toxic.stream for toxic in self._memory.at(route.proxy) if toxic.kind == "timeout"}
        return {Direction.REQUESTS: "upstream" not in cut, Direction.ANSWERS: "downstream" not in cut}

    def talk(self, link: Link, questions: Questions) -> Talk:
        size = {"upstream": _QUESTION_BYTES + questions.padding, "downstream": _ANSWER_BYTES}
        took_s, answers, ending = 0.001, questions.count, Ending.ANSWERED
        piece = float(_ANSWER_BYTES)
        for toxic in self._memory.at(self._route(link).proxy):
            value = next(iter(toxic.attributes.values()))
            moved = size[toxic.stream] * questions.count
            if toxic.kind == "latency":
                jitter = toxic.attributes["jitter"] * (1 if link.source < link.destination else -1)
                took_s += (value + jitter) / 1000
            elif toxic.kind == "bandwidth":
                took_s += moved / value / 1000
            elif toxic.kind == "slicer":
                took_s, piece = took_s + moved / value / 1000, min(piece, value)
            elif toxic.kind == "limit_data" and moved > value:
                answers = min(answers, value // size[toxic.stream])
                received = value if toxic.stream == "downstream" else answers * _ANSWER_BYTES
                return Talk(Ending.CLOSED, answers, answers * size["upstream"], received, took_s)
            elif toxic.kind == "reset_peer":
                return Talk(Ending.RESET, 0, 0, 0, took_s + value / 1000)
            elif toxic.kind == "timeout":
                return Talk(Ending.SILENT, 0, 0, 0, questions.limit_s)
        return Talk(ending, answers, answers * size["upstream"], answers * _ANSWER_BYTES, took_s, piece)

    @contextmanager
    def long_question(
        self, link: Link, topic: str, partition: int, wait_s: float
    ) -> Iterator[Callable[[float], bool]]:
        """Answer as soon as the caller waits for it, if the way back is open."""
        yield lambda limit_s: limit_s > 0 and self.passes(link)[Direction.ANSWERS] and not self.answers_lost


class LinkedProcess(PeerLinked, KafkaProcess):
    """A server that is never started."""


@dataclass
class MeshCluster:
    """Cluster and view in one. A broker is registered while it sees the active controller, which sees a majority."""

    brokers: int = 3
    controllers: int = 3
    combined: bool = False

    def __post_init__(self) -> None:
        mesh = Mesh(99, members(self.brokers, self.controllers, self.combined))
        self.toxiproxy = MemoryToxiproxy()
        self.links = MemoryLinks(mesh, self.toxiproxy)
        self._nodes = [
            LinkedProcess(member, mesh.address(member), self.links, Path("nowhere"), PLAIN, cast(Jvm, None))
            for member in mesh.members
        ]

    def __getitem__(self, name: str) -> PeerLinked:
        return next(node for node in self._nodes if node.name == name)

    def nodes(self) -> Sequence[Node]:
        return self._nodes

    def view(self) -> MeshCluster:
        return self

    def sees(self, source: str, destination: str) -> bool:
        link = Link(source, destination, controller=True)
        return source == destination or self.links.passes(link)[Direction.BOTH]

    def active_controller(self) -> str:
        names = [node.name for node in self._nodes if node.member.controller]
        for name in names:
            if sum(self.sees(other, name) for other in names) * 2 > len(names):
                return name
        raise ClusterError("no controller says that it leads the quorum")

    def registered_brokers(self) -> Sequence[str]:
        active = self.active_controller()
        return [node.name for node in self._nodes if node.member.broker and self.sees(node.name, active)]

    def partitions(self, topic: str) -> Sequence[PartitionState]:
        there, names = self.registered_brokers(), [n.name for n in self._nodes if n.member.broker]
        in_sync = tuple(name for name in names if name in there)
        return [PartitionState(topic, 0, in_sync[0] if in_sync else None, 0, tuple(names), in_sync)]

    def residue(self) -> Sequence[str]:
        return self.links.residue()


@dataclass
class MeshArena:
    cluster: Any
    topic: str = TOPIC
    group: str = "none"
    patience: float = 1.0

    def nodes(self) -> Sequence[Node]:
        nodes: Sequence[Node] = self.cluster.nodes()
        return nodes


def make_arena(
    brokers: int = 3, controllers: int = 3, combined: bool = False, patience: float = 1.0
) -> MeshArena:
    return MeshArena(MeshCluster(brokers, controllers, combined), patience=patience)
