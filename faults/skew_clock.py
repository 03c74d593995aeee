"""A wall clock that jumps, or runs too fast or too slow. Durations (monotonic clocks) stay right."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import able, wait_whole
from harness.contracts import Arena, Bite, Healing, Node, Skewable
from harness.errors import ClusterError, UsageError, WaitTimeout
from harness.targets import consumer, every_broker, leader_of, producer
from harness.waiting import wait_until

RIGHT_WITHIN_S = 0.5
_SET_LIMIT_S = 10.0
_DRIFT_FOR_S = 8.0
_DRIFT_WITHIN = 0.2  # of the drift: a drifting clock moves in steps of about a second
_LEAST_DRIFT = 0.02


@dataclass(frozen=True)
class SkewClock:
    """Jumps by `offset_s`, and runs at `rate` from then on. A drift is one step of `rate - 1` seconds every second.

    The cluster has to be started with clocks. A controller reports its time only while it leads the quorum, so of the
    controllers only the active one can be a target. A worker stamps its records with the wrong clock; the timeouts of
    its client library stay right.
    """

    offset_s: float = 60.0
    rate: float = 1.0
    needs: ClassVar[type] = Skewable
    ways: ClassVar[Mapping[str, str]] = {
        "libfaketime": "Debian's libfaketime (fetched); for nodes, a cluster with clocks"
    }
    bites_when: ClassVar[str] = (
        "the node's own clock is wrong by `offset_s` (within 0.5 s), and drifts by `rate` (within 20 %)"
    )

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 100:
            raise UsageError(f"skew_clock: rate={self.rate:g}; set more than 0 and at most 100")
        if self.rate != 1 and abs(self.rate - 1) < _LEAST_DRIFT:
            raise UsageError(
                f"skew_clock: rate={self.rate:g} cannot be distinguished from 1 within {_DRIFT_FOR_S:g} s"
            )
        if self.rate == 1 and abs(self.offset_s) < 2 * RIGHT_WITHIN_S:
            raise UsageError(
                f"skew_clock: offset_s={self.offset_s:g} is too small to measure; set at least 1 s"
            )

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = _skewable(nodes)
        with ExitStack() as undo:
            for node in targets:
                undo.callback(node.right_clock)
            begun = time.monotonic()
            for node in targets:
                node.skew_clock(self.offset_s, self.rate)
            yield self._bite(arena, targets, begun)

    def _bite(self, arena: Arena, targets: Sequence[Skewable], begun: float) -> Bite:
        if not targets:
            return Bite(False, "there was no clock to set")
        try:
            first = {node.name: self._wait_set(arena, node, begun) for node in targets}
            worst = max(first.values(), key=lambda offset_s: abs(offset_s - self.offset_s))
            measured = {"offset_s": round(worst, 3), "set_s": round(time.monotonic() - begun, 3)}
            proofs = [f"clock of {name} is wrong by {offset_s:+.2f} s" for name, offset_s in first.items()]
            if self.rate == 1:
                return Bite(True, "; ".join(proofs), measured, way="libfaketime")
            since = time.monotonic()
            time.sleep(arena.patience * _DRIFT_FOR_S)
            drifts = {
                node.name: (node.clock_offset_s() - first[node.name]) / (time.monotonic() - since)
                for node in targets
            }
        except (ClusterError, WaitTimeout) as error:
            return Bite(False, str(error), way="libfaketime")
        wanted = self.rate - 1
        bit = all(abs(drift - wanted) <= _DRIFT_WITHIN * abs(wanted) for drift in drifts.values())
        proofs += [f"drift of {name} is {drift:+.3f} s/s" for name, drift in drifts.items()]
        farthest = max(drifts.values(), key=lambda drift: abs(drift - wanted))
        return Bite(bit, "; ".join(proofs), {**measured, "drift": round(farthest, 4)}, way="libfaketime")

    def _wait_set(self, arena: Arena, node: Skewable, begun: float) -> float:
        """Wait until the clock is as wrong as it should be by now; return the offset."""
        last = 0.0

        def as_wanted() -> bool:
            nonlocal last
            last = node.clock_offset_s()
            drifted = (self.rate - 1) * (time.monotonic() - begun)
            return abs(last - self.offset_s - drifted) <= RIGHT_WITHIN_S + 2 * abs(self.rate - 1)

        wait_until(
            as_wanted,
            arena.patience * _SET_LIMIT_S,
            lambda: f"the clock of {node.name} is wrong by only {last:+.2f} s",
        )
        return last

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        targets = _skewable(nodes)
        left: dict[str, float] = {}

        def wrong() -> str | None:
            try:
                left.update({node.name: node.clock_offset_s() for node in targets})
            except ClusterError as error:
                return str(error)
            far = [
                f"{name} {offset_s:+.2f} s"
                for name, offset_s in left.items()
                if abs(offset_s) >= RIGHT_WITHIN_S
            ]
            return f"still wrong: {', '.join(far)}" if far else None

        names = [node.name for node in nodes]
        healing = wait_whole(arena, names, wrong, f"clock right within {RIGHT_WITHIN_S:g} s")
        after = {"offset_s": round(max(map(abs, left.values())), 3)} if left else {}
        return replace(healing, measured={**healing.measured, **after})

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "skew_clock", "offset_s": self.offset_s, "rate": self.rate}

    def __str__(self) -> str:
        if self.rate != 1:
            return f"skew_clock-{'fast' if self.rate > 1 else 'slow'}"
        return "skew_clock" if self.offset_s > 0 else "skew_clock-back"


def _skewable(nodes: Sequence[Node]) -> list[Skewable]:
    return able(nodes, Skewable, "the clock of {} cannot be set")


cases = (
    Case(SkewClock(), leader_of(0), hold_s=3.0),
    Case(SkewClock(offset_s=-600.0), every_broker(), hold_s=3.0),
    Case(SkewClock(), producer(1), hold_s=3.0, name="skew_clock-producer"),
    Case(SkewClock(offset_s=-600.0), consumer(1), hold_s=3.0, name="skew_clock-consumer"),
)
fault_class = SkewClock
