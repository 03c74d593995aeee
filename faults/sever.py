"""Cut chosen links, both ways or one way, and nothing else: bytes vanish, connections stay open."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._measure import Leadership, probe_links, wait_whole
from harness.contracts import Arena, Bite, Cut, Direction, Healing, Lane, Link, Node, Severable
from harness.errors import FaultError, UsageError

SHAPES = ("isolate", "replication", "answers")
_LANES = {lane.value for lane in Lane}


@dataclass(frozen=True)
class Sever:
    """`isolate`: all links of the target with other nodes, clients still reach it. `replication`: only those on
    which other nodes fetch from it. `answers`: only what it answers to producers.

    Between combined nodes one link carries replication and quorum traffic alike, so there `replication` also keeps
    the others from a controller on the target; with controllers of their own it does not.
    """

    shape: str = "isolate"
    direction: Direction = Direction.BOTH
    needs: ClassVar[type] = Severable
    ways: ClassVar[Mapping[str, str]] = {"link mesh": "nothing"}
    bites_when: ClassVar[str] = "probes fail on every link that is cut, and only in the direction that is cut"

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise UsageError(f"sever: unknown shape {self.shape!r}; there are: {', '.join(SHAPES)}")
        if self.shape == "answers" and self.direction is Direction.REQUESTS:
            raise UsageError("sever: shape 'answers' cuts answers, not requests; leave out direction")

    def cuts(self, node: Severable) -> list[Cut]:
        """Which links of the target are cut, and which way."""
        inside = [link for link in node.links() if link.source not in _LANES]
        if self.shape == "isolate":
            return [Cut(link, self.direction) for link in inside]
        if self.shape == "replication":
            return [Cut(link, self.direction) for link in inside if link.destination == node.name]
        return [Cut(Link(Lane.PRODUCE.value, node.name), Direction.ANSWERS)]

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = _severable(nodes)
        led = Leadership.of(arena, [node.name for node in targets])
        with ExitStack() as undo:
            for node in targets:
                undo.callback(node.mend)
            begun = time.monotonic()
            for node in targets:
                node.sever(self.cuts(node))
            yield self._bite(arena, targets, led, begun)

    def _bite(self, arena: Arena, targets: Sequence[Severable], led: Leadership, begun: float) -> Bite:
        if not targets:
            return Bite(False, "there was nobody to cut off")
        cut = 0
        for node in targets:
            cuts = self.cuts(node)
            passing = probe_links(node, [each.link for each in cuts])
            wrong = [str(each.link) for each in cuts if not _as_wanted(each, passing[each.link])]
            if wrong:
                return Bite(False, f"cut in vain, probes still tell otherwise: {', '.join(wrong)}")
            cut += len(cuts)
        which = "" if self.direction is Direction.BOTH and self.shape != "answers" else " one way"
        proof = f"probes of {cut} link{'' if cut == 1 else 's'} of {', '.join(n.name for n in targets)} fail{which}"
        measured = {"links_cut": float(cut)}
        if self.shape != "isolate":
            return Bite(True, proof, measured)
        moved = led.wait_moved(arena, begun)
        return Bite(moved.moved, f"{proof}; {moved.proof}", {**measured, **moved.measured})

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        targets = _severable(nodes)

        def still_cut() -> str | None:
            dead = [
                str(link)
                for node in targets
                for link, ways in probe_links(node, node.links()).items()
                if not all(ways.values())
            ]
            return f"no answer through {', '.join(dead)}" if dead else None

        return wait_whole(arena, [node.name for node in nodes], still_cut, "every link passes both ways")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "sever", "shape": self.shape, "direction": self.direction.value}

    def __str__(self) -> str:
        one_way = (
            [] if self.direction is Direction.BOTH or self.shape == "answers" else [self.direction.value]
        )
        shape = [] if self.shape == "isolate" and not one_way else [self.shape]
        return "-".join(["sever", *shape, *one_way])


def _as_wanted(cut: Cut, ways: Mapping[Direction, bool]) -> bool:
    """The cut way is dead, and of a one-way cut the other way lives."""
    requests, answers = ways[Direction.REQUESTS], ways[Direction.ANSWERS]
    if cut.direction is Direction.BOTH:
        return not requests and not answers
    return (requests, answers) == (cut.direction is Direction.ANSWERS, cut.direction is Direction.REQUESTS)


def _severable(nodes: Sequence[Node]) -> list[Severable]:
    for node in nodes:
        if not isinstance(node, Severable):
            raise FaultError(f"{node.name} has no links that can be cut")
    return [node for node in nodes if isinstance(node, Severable)]


fault_class = Sever
