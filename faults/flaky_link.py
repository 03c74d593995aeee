"""Links whose connections do not last: they are reset, closed after some bytes, or open at one end only."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._actors import Actors, shapeable
from faults._cases import Case
from faults._measure import wait_whole
from faults._pace import SHORTEST_ANSWER_BYTES
from faults._shapes import check_lanes
from harness.contracts import (
    Arena,
    Bite,
    Direction,
    Ending,
    Healing,
    Link,
    Node,
    Questions,
    Shapeable,
    Talk,
    Toxic,
)
from harness.errors import UsageError
from harness.targets import leader_of

KINDS = ("reset", "half_open", "close_after")
# Docker's proxy for a published port does not pass resets on: behind it a reset looks like a normal close.
_BROKEN = (Ending.RESET, Ending.CLOSED)
_WAY = "link mesh"
_PROBES = 3  # connections on each link
_SILENCE_S = 1.5
_LIMIT_S = 10.0
_KEPT_OPEN_MS = 3_600_000  # longer than any window; removing the toxic closes the connections


@dataclass(frozen=True)
class FlakyLink:
    """`reset`: a connection is reset `after_ms` after the first bytes in `direction`, which are lost; with
    `answers` the request has arrived and was processed by then. `half_open`: the destination's end is closed, while the
    side that connected keeps an open connection on which nothing comes back. `close_after`: each connection passes
    `after_bytes` in `direction` and is then closed. `lanes` as for slow_link.

    A connection that was open before the fault is closed normally instead of reset, at its next bytes.
    """

    kind: str = "reset"
    after_ms: int = 0
    after_bytes: int = 10_000
    lanes: str = "all"
    direction: Direction = Direction.BOTH
    needs: ClassVar[type] = Shapeable
    ways: ClassVar[Mapping[str, str]] = {_WAY: "nothing"}
    bites_when: ClassVar[str] = (
        "every probe's connection ends as its kind says: reset, open but silent, or closed after about that many bytes"
    )

    def __post_init__(self) -> None:
        check_lanes("flaky_link", self.lanes)
        if self.kind not in KINDS:
            raise UsageError(f"flaky_link: unknown kind {self.kind!r}; choose one of {', '.join(KINDS)}")
        if not 0 <= self.after_ms <= 10_000:
            raise UsageError(f"flaky_link: after_ms={self.after_ms}; choose 0 to 10000")
        if not 100 <= self.after_bytes <= 100_000:
            raise UsageError(f"flaky_link: after_bytes={self.after_bytes}; choose 100 to 100000")
        if self.kind == "half_open" and self.direction is not Direction.BOTH:
            raise UsageError(
                "flaky_link: a half-open connection passes nothing either way; leave out direction"
            )

    def toxics(self) -> list[Toxic]:
        if self.kind == "reset":
            return [Toxic("reset_peer", {"timeout": self.after_ms}, self.direction)]
        if self.kind == "close_after":
            return [Toxic("limit_data", {"bytes": self.after_bytes}, self.direction)]
        return [
            # The toxic that keeps one end open has to come before the one that closes the other end.
            Toxic("slow_close", {"delay": _KEPT_OPEN_MS}, Direction.ANSWERS),
            Toxic("timeout", {"timeout": 1}, Direction.REQUESTS),
        ]

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        actors = Actors.of(shapeable(nodes))
        links = actors.can_shape(self.lanes)
        if not links:
            names = ", ".join(actors.targets) or "no target"
            yield Bite(False, f"{names}: there is no link in lanes {self.lanes} that can be shaped", way=_WAY)
            return
        with actors.shaped(self, links, self.toxics()):
            yield self._bite(actors, links)

    def _bite(self, actors: Actors[Shapeable], links: Sequence[Link]) -> Bite:
        talks = self._probe(actors, links, self._questions())
        otherwise = [str(link) for link, each in talks.items() if not all(map(self._as_wanted, each))]
        if otherwise:
            endings = sorted({talk.ending.value for each in talks.values() for talk in each})
            return Bite(False, f"not {self.kind} but {', '.join(endings)}: {', '.join(otherwise)}", way=_WAY)
        all_talks = [talk for each in talks.values() for talk in each]
        took_ms = statistics.median(talk.took_s * 1000 for talk in all_talks)
        passed = statistics.median(self._passed(talk) for talk in all_talks)
        whose = actors.whose(links, self.lanes)
        count = f"{len(all_talks)} of {len(all_talks)} connections through {whose}"
        proofs = {
            "reset": f"{count} were {_how(all_talks)} after {took_ms:.0f} ms (median)",
            "half_open": f"{count} stayed open without an answer for {took_ms / 1000:.1f} s",
            "close_after": f"{count} were closed after {passed:.0f} bytes (median)",
        }
        measured = {"links": float(len(links)), "connections": float(len(all_talks))}
        measured |= {"ended_p50_ms": round(took_ms, 1), "passed_p50_bytes": float(passed)}
        return Bite(True, proofs[self.kind], measured, _WAY)

    def _as_wanted(self, talk: Talk) -> bool:
        if self.kind == "reset":
            return talk.ending in _BROKEN and talk.took_s * 1000 >= self.after_ms and not talk.answers
        if self.kind == "half_open":
            return talk.ending is Ending.SILENT and not talk.answered_bytes
        return talk.ending in _BROKEN and 0.5 * self.after_bytes <= self._passed(talk) <= self.after_bytes

    def _passed(self, talk: Talk) -> int:
        """Return the bytes that passed in the fault's direction."""
        return talk.asked_bytes if self.direction is Direction.REQUESTS else talk.answered_bytes

    def _questions(self) -> Questions:
        if self.kind == "reset":
            return Questions(limit_s=self.after_ms / 1000 + _LIMIT_S)
        if self.kind == "half_open":
            return Questions(limit_s=_SILENCE_S)
        # One question at a time: closing a connection with questions in its queue resets it, and answers are lost.
        if self.direction is Direction.REQUESTS:
            return Questions(count=40, padding=self.after_bytes // 20, limit_s=_LIMIT_S)
        return Questions(count=2 * self.after_bytes // SHORTEST_ANSWER_BYTES + 2, limit_s=_LIMIT_S)

    def _probe(
        self, actors: Actors[Shapeable], links: Sequence[Link], questions: Questions
    ) -> dict[Link, list[Talk]]:
        def talks(link: Link) -> list[Talk]:
            return [actors.actor(link).talk(link, questions) for _ in range(_PROBES)]

        with ThreadPoolExecutor(max_workers=max(1, len(links))) as pool:
            return dict(zip(links, pool.map(talks, links), strict=True))

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        actors = Actors.of(shapeable(nodes))
        links = actors.can_shape(self.lanes)
        questions = self._questions()

        def still_flaky() -> str | None:
            talks = self._probe(actors, links, questions)
            bad = [
                str(link)
                for link, each in talks.items()
                if any(talk.ending is not Ending.ANSWERED for talk in each)
            ]
            return f"connections still end early: {', '.join(bad)}" if bad else None

        return wait_whole(arena, actors.targets, still_flaky, f"connections of {len(links)} links last again")

    def describe(self) -> Mapping[str, Any]:
        return {
            "fault": "flaky_link",
            "kind": self.kind,
            "after_ms": self.after_ms,
            "after_bytes": self.after_bytes,
            "lanes": self.lanes,
            "direction": self.direction.value,
        }

    def __str__(self) -> str:
        words = [
            *([self.kind] if self.kind != "reset" else []),
            *([self.lanes] if self.lanes != "all" else []),
            *([self.direction.value] if self.direction is not Direction.BOTH else []),
        ]
        return "-".join(["flaky_link", *words])


def _how(talks: Sequence[Talk]) -> str:
    closed = sum(talk.ending is Ending.CLOSED for talk in talks)
    return f"reset, {closed} of them seen as closed without an answer," if closed else "reset"


cases = (
    Case(FlakyLink(), leader_of(0)),
    Case(FlakyLink("close_after"), leader_of(0)),
    Case(FlakyLink("half_open"), leader_of(0)),
)
fault_class = FlakyLink
