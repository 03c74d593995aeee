"""Slow links: latency, jitter, a low rate, or small slices with pauses between them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from faults._actors import Actors, shapeable
from faults._cases import Case
from faults._measure import wait_whole
from faults._pace import Look, Pace, trips_of
from faults._shapes import check_lanes
from harness.contracts import Arena, Bite, Direction, Healing, Link, Node, Shapeable, Toxic
from harness.errors import UsageError
from harness.targets import leader_of

_WAY = "link mesh"
_SLICE_GAP_US = 1000  # without a pause the kernel puts slices together again
_LIMIT_S = 10.0
_TRIES = 3  # on an open link: a busy machine must not look like a slow link


@dataclass(frozen=True)
class SlowLink:
    """Each direction gets `latency_ms` plus or minus `jitter_ms`, `rate_kb_s` for each connection (0: no limit), and
    slices of at most `slice_bytes` with a millisecond between them (0: no slices). `lanes` of the target: all, clients,
    producers, replication (with other brokers), controllers.
    """

    latency_ms: int = 100
    jitter_ms: int = 0
    rate_kb_s: int = 0
    slice_bytes: int = 0
    lanes: str = "all"
    direction: Direction = Direction.BOTH
    needs: ClassVar[type] = Shapeable
    ways: ClassVar[Mapping[str, str]] = {_WAY: "nothing"}
    bites_when: ClassVar[str] = (
        "on every link no round trip is quicker than the latency allows, and no transfer is faster than the rate and "
        "the slices allow, while before the fault they were"
    )

    def __post_init__(self) -> None:
        check_lanes("slow_link", self.lanes)
        if not (self.latency_ms or self.rate_kb_s or self.slice_bytes):
            raise UsageError("slow_link: nothing is slow; set latency_ms, rate_kb_s or slice_bytes")
        if self.latency_ms and not 20 <= self.latency_ms <= 10_000:
            raise UsageError(f"slow_link: latency_ms={self.latency_ms}; choose 20 to 10000")
        if not 0 <= self.jitter_ms <= self.latency_ms // 2:
            raise UsageError(
                f"slow_link: jitter_ms={self.jitter_ms} is more than half of latency_ms; choose less"
            )
        for name in ("rate_kb_s", "slice_bytes"):
            if getattr(self, name) and not 5 <= getattr(self, name) <= 1000:
                raise UsageError(f"slow_link: {name}={getattr(self, name)}; choose 5 to 1000")

    def toxics(self) -> list[Toxic]:
        found = []
        if self.latency_ms:
            found.append(("latency", {"latency": self.latency_ms, "jitter": self.jitter_ms}))
        if self.slice_bytes:
            found.append(
                (
                    "slicer",
                    {"average_size": self.slice_bytes, "size_variation": 0, "delay": _SLICE_GAP_US},
                )
            )
        if self.rate_kb_s:
            found.append(("bandwidth", {"rate": self.rate_kb_s}))
        return [Toxic(kind, attributes, self.direction) for kind, attributes in found]

    @property
    def slowed(self) -> tuple[Direction, ...]:
        both = (Direction.REQUESTS, Direction.ANSWERS)
        return both if self.direction is Direction.BOTH else (self.direction,)

    @property
    def least_ms(self) -> float:
        """The least time of a round trip, with some tolerance for clocks."""
        return 0.8 * (self.latency_ms - self.jitter_ms) * len(self.slowed)

    @property
    def most_kb_s(self) -> float:
        """The highest throughput; 0: no limit is set. One slice of n bytes a millisecond is n KB/s."""
        return float(min((each for each in (self.rate_kb_s, self.slice_bytes) if each), default=0))

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        actors = Actors.of(shapeable(nodes))
        links = actors.can_shape(self.lanes)
        if not links:
            names = ", ".join(actors.targets) or "no target"
            yield Bite(False, f"{names}: there is no link in lanes {self.lanes} that can be shaped", way=_WAY)
            return
        before = self._look(_TRIES).at(actors, links)
        with actors.shaped(self, links, self.toxics()):
            yield self._bite(actors, before, self._look(1).at(actors, links))

    def _bite(
        self,
        actors: Actors[Shapeable],
        before: Mapping[Link, Pace | None],
        during: Mapping[Link, Pace | None],
    ) -> Bite:
        whose = actors.whose(list(before), self.lanes)
        fast = [pace for pace in before.values() if pace is not None]
        slow = [pace for pace in during.values() if pace is not None]
        if len(fast) < len(before) or len(slow) < len(during):
            mute = [str(link) for link in before if before[link] is None or during[link] is None]
            return Bite(False, f"nothing came back through {', '.join(mute)}", way=_WAY)
        proof, measured, bit = [], {"links": float(len(before))}, True
        if self.latency_ms:
            was, now = trips_of(fast), trips_of(slow)
            spread = max(now) - min(now)
            bit &= all(map(self._slower, fast, slow)) and spread >= self.jitter_ms / 2
            medians = (statistics.median(was), statistics.median(now))
            proof.append(f"round trip rose from {medians[0]:.1f} to {medians[1]:.1f} ms (median)")
            measured |= {
                "before_p50_ms": round(medians[0], 2),
                "during_p50_ms": round(medians[1], 2),
                "during_spread_ms": round(spread, 2),
            }
        for way in self._limited:
            was_kb_s, now_kb_s = min(p.kb_s[way] for p in fast), max(p.kb_s[way] for p in slow)
            bit &= was_kb_s >= 1.5 * self.most_kb_s and now_kb_s <= 1.3 * self.most_kb_s
            proof.append(f"{way.value} fell from {was_kb_s:.0f} to {now_kb_s:.0f} KB/s")
            measured |= {f"before_{way.value}_kb_s": round(was_kb_s, 1)}
            measured |= {f"during_{way.value}_kb_s": round(now_kb_s, 1)}
        if self.slice_bytes and Direction.ANSWERS in self.slowed:
            piece = max(p.piece_bytes for p in slow)
            bit &= piece <= self.slice_bytes
            proof.append(f"answers arrive {piece:.0f} bytes at a time (median)")
            measured |= {"piece_bytes": piece}
        return Bite(bit, f"{whose}: {', '.join(proof)}", measured, _WAY)

    def _slower(self, before: Pace, during: Pace) -> bool:
        """Return whether no round trip is quick; under another fault, whether all take longer than before."""
        was, now = min(before.trips_ms), min(during.trips_ms)
        return was < self.least_ms <= now or now - was >= self.least_ms

    def _look(self, tries: int) -> Look:
        limit_s = _LIMIT_S + 2 * (self.latency_ms + self.jitter_ms) / 1000
        return Look(self._limited, self.most_kb_s, tries, limit_s)

    @property
    def _limited(self) -> tuple[Direction, ...]:
        return self.slowed if self.most_kb_s else ()

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """Wait until one round trip on each link is quick: under the latency, none is."""
        actors = Actors.of(shapeable(nodes))
        links = actors.can_shape(self.lanes)
        after: dict[Link, Pace | None] = {}

        def still_slow() -> str | None:
            after.update(self._look(_TRIES).at(actors, links))
            slow = [str(link) for link, pace in after.items() if pace is None or not self._quick(pace)]
            return f"still slow: {', '.join(slow)}" if slow else None

        healing = wait_whole(arena, actors.targets, still_slow, "its links are as quick as before")
        trips = trips_of([pace for pace in after.values() if pace is not None])
        median = {"after_p50_ms": round(statistics.median(trips), 2)} if trips else {}
        return replace(healing, measured={**healing.measured, **median})

    def _quick(self, pace: Pace) -> bool:
        trips = not self.latency_ms or min(pace.trips_ms) < self.least_ms
        return trips and all(kb_s >= 1.5 * self.most_kb_s for kb_s in pace.kb_s.values())

    def describe(self) -> Mapping[str, Any]:
        return {
            "fault": "slow_link",
            "latency_ms": self.latency_ms,
            "jitter_ms": self.jitter_ms,
            "rate_kb_s": self.rate_kb_s,
            "slice_bytes": self.slice_bytes,
            "lanes": self.lanes,
            "direction": self.direction.value,
        }

    def __str__(self) -> str:
        how = [
            word
            for word, on in (
                ("jitter", self.jitter_ms),
                ("rate", self.rate_kb_s),
                ("slices", self.slice_bytes),
                (self.lanes, self.lanes != "all"),
                (self.direction.value, self.direction is not Direction.BOTH),
            )
            if on
        ]
        return "-".join(["slow_link", *how])


cases = (
    Case(SlowLink(), leader_of(0), hold_s=3.0),
    Case(SlowLink(latency_ms=0, rate_kb_s=64), leader_of(0), hold_s=3.0),
)
fault_class = SlowLink
