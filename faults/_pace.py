"""The speed of links: round trips, throughput each way, and the size of the pieces that arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from faults._actors import Actors
from harness.contracts import Direction, Ending, Link, Questions, Shapeable, Talk

SHORTEST_ANSWER_BYTES = 260  # to a probe's question
_TRIPS = 7
_LOAD_S = 0.5  # time that the bytes of a probe take at the expected rate


@dataclass(frozen=True)
class Pace:
    """Measurements of one link."""

    trips_ms: tuple[float, ...]
    kb_s: Mapping[Direction, float]  # the fastest of several tries
    piece_bytes: float  # median of the bytes that arrived at once; 0: answers were not measured


@dataclass(frozen=True)
class Look:
    """The measurement to make: round trips always, and in these directions whether `kb_s` is reached in `tries` tries."""

    ways: tuple[Direction, ...]
    kb_s: float
    tries: int
    limit_s: float

    def at(self, actors: Actors[Shapeable], links: Sequence[Link]) -> dict[Link, Pace | None]:
        """Measure all links in parallel; None for a link on which nothing came back."""
        with ThreadPoolExecutor(max_workers=max(1, len(links))) as pool:
            paces = pool.map(lambda link: self._pace(actors.actor(link), link), links)
            return dict(zip(links, paces, strict=True))

    def _pace(self, node: Shapeable, link: Link) -> Pace | None:
        trips = [node.talk(link, Questions(limit_s=self.limit_s)) for _ in range(_TRIPS)]
        loads = {way: [node.talk(link, self._load(way)) for _ in range(self.tries)] for way in self.ways}
        talks = [*trips, *(talk for each in loads.values() for talk in each)]
        if any(talk.ending is not Ending.ANSWERED for talk in talks):
            return None
        return Pace(
            tuple(talk.took_s * 1000 for talk in trips),
            {way: max(_kb_s(way, talk) for talk in each) for way, each in loads.items()},
            max((talk.piece_bytes for talk in loads.get(Direction.ANSWERS, [])), default=0.0),
        )

    def _load(self, way: Direction) -> Questions:
        """Return enough bytes to measure the rate: one long question, or many short ones at once."""
        size = int(self.kb_s * 1000 * _LOAD_S)
        if way is Direction.REQUESTS:
            return Questions(padding=size, limit_s=self.limit_s)
        count = size // SHORTEST_ANSWER_BYTES + 1
        return Questions(count=count, at_once=count, limit_s=self.limit_s)


def trips_of(paces: Sequence[Pace]) -> list[float]:
    return [trip for pace in paces for trip in pace.trips_ms]


def _kb_s(way: Direction, talk: Talk) -> float:
    moved = talk.asked_bytes if way is Direction.REQUESTS else talk.answered_bytes
    return moved / 1000 / max(talk.took_s, 1e-6)
