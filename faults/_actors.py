"""Shared by faults on links: the node that acts on a link, and the name under which a hold acts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

from faults._measure import able
from faults._shapes import Wiring
from harness.contracts import Fault, Link, Node, Severable, Shapeable, Toxic

N = TypeVar("N", bound=Severable)
_HOLDS = count(1)


def name_of_hold(fault: Fault) -> str:
    """Return a name unique to this hold, so that two holds may share a link and each undoes only its own changes."""
    return f"{fault}-{next(_HOLDS)}"


def severable(nodes: Sequence[Node]) -> list[Severable]:
    return able(nodes, Severable, "{} has no links that can be cut")


def shapeable(nodes: Sequence[Node]) -> list[Shapeable]:
    return able(nodes, Shapeable, "{} has no links that can be shaped")


@dataclass(frozen=True)
class Actors(Generic[N]):
    """The targets, other nodes that may act, and all their links."""

    targets: tuple[str, ...]
    by_name: Mapping[str, N]
    wiring: Wiring

    @classmethod
    def of(cls, targets: Sequence[N], others: Sequence[N] = ()) -> Actors[N]:
        nodes = {node.name: node for node in (*others, *targets)}
        wiring = Wiring.of(nodes, (link for node in nodes.values() for link in node.links()))
        return cls(tuple(node.name for node in targets), nodes, wiring)

    def actor(self, link: Link) -> N:
        """Return a node at an end of the link, a target if possible."""
        ends = [name for name in (link.destination, link.source) if name in self.by_name]
        return self.by_name[next((name for name in ends if name in self.targets), ends[0])]

    def at(self, links: Iterable[Link]) -> list[tuple[N, list[Link]]]:
        """Group the links by the node that acts on them; each link appears once."""
        found: dict[str, list[Link]] = {}
        for link in links:
            found.setdefault(self.actor(link).name, []).append(link)
        return [(self.by_name[name], own) for name, own in found.items()]

    @contextmanager
    def shaped(
        self: Actors[Shapeable], fault: Fault, links: Sequence[Link], toxics: Sequence[Toxic]
    ) -> Iterator[None]:
        """Apply the toxics to the links, and remove them even after an error."""
        by = name_of_hold(fault)
        with ExitStack() as undo:
            for node, _own in self.at(links):
                undo.callback(node.unshape, by)
            for node, own in self.at(links):
                node.shape(own, toxics, by)
            yield

    def can_shape(self: Actors[Shapeable], lanes: str) -> list[Link]:
        """Return the targets' links in these lanes that accept toxics."""
        can = {link for node in self.by_name.values() for link in node.shapeable_links()}
        return [link for link in self.wiring.chosen(self.targets, lanes) if link in can]

    def whose(self: Actors[Shapeable], links: Sequence[Link], lanes: str) -> str:
        """Describe the links for a proof: their number, the targets, and how many links cannot be shaped."""
        left_out = len(self.wiring.chosen(self.targets, lanes)) - len(links)
        others = f" ({left_out} others cannot be shaped)" if left_out else ""
        return f"{len(links)} link{'' if len(links) == 1 else 's'} of {', '.join(self.targets)}{others}"

    def probes(self, links: Iterable[Link]) -> dict[Link, N]:
        return {link: self.actor(link) for link in links}
