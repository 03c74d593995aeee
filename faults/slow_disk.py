"""A disk on which every append takes longer. Kafka does not wait for fsync, so it is the append that counts."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from faults._measure import wait_whole
from harness.contracts import Arena, Bite, DiskBreakable, DiskFault, DiskHarm, Healing, Node
from harness.errors import ClusterError, FaultError, UsageError

_SAMPLES = 7


@dataclass(frozen=True)
class SlowDisk:
    """Bites when the median append at each target takes longer by at least 80 % of `delay_ms`."""

    delay_ms: int = 50
    needs: ClassVar[type] = DiskBreakable
    ways: ClassVar[Mapping[str, str]] = {"byteman": "nothing"}
    bites_when: ClassVar[str] = "the median append at each target takes longer by at least 80 % of the delay"

    def __post_init__(self) -> None:
        if self.delay_ms < 10:
            raise UsageError(f"slow_disk: delay_ms={self.delay_ms} cannot be told from noise; at least 10")

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = _breakable(nodes)
        before = [_median_ms(arena, node) for node in targets]
        with ExitStack() as undo:
            for node in targets:
                undo.callback(node.mend_disk)
            for node in targets:
                node.break_disk(DiskFault(DiskHarm.SLOW_APPEND, self.delay_ms, topics_prefix=arena.topic))
            yield self._bite(arena, targets, before)

    def _bite(self, arena: Arena, targets: Sequence[DiskBreakable], before: Sequence[float]) -> Bite:
        if not targets:
            return Bite(False, "there was no disk to slow down")
        during = [_median_ms(arena, node) for node in targets]
        rises = [
            f"append at {node.name} rose from {fast:.1f} to {slow:.1f} ms (median)"
            for node, fast, slow in zip(targets, before, during, strict=True)
        ]
        bit = all(slow - fast >= 0.8 * self.delay_ms for fast, slow in zip(before, during, strict=True))
        measured = {"before_p50_ms": round(max(before), 2), "during_p50_ms": round(min(during), 2)}
        return Bite(bit, "; ".join(rises), measured)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """A median below the delay is proof enough: while the rule is there no append is that quick."""
        targets = _breakable(nodes)
        medians: dict[str, float] = {}

        def still_slow() -> str | None:
            try:
                medians.update({node.name: _median_ms(arena, node) for node in targets})
            except ClusterError as error:
                return str(error)
            slow = [f"{name} {median:.1f} ms" for name, median in medians.items() if median >= self.delay_ms]
            return f"append still slow at {', '.join(slow)}" if slow else None

        names = [node.name for node in nodes]
        healing = wait_whole(arena, names, still_slow, f"append takes less than {self.delay_ms} ms again")
        after = {"after_p50_ms": round(max(medians.values()), 2)} if medians else {}
        return replace(healing, measured={**healing.measured, **after})

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "slow_disk", "delay_ms": self.delay_ms}

    def __str__(self) -> str:
        return "slow_disk"


def _median_ms(arena: Arena, node: Node) -> float:
    view = arena.cluster.view()
    return statistics.median(view.produce_round_trip_ms(node.name) for _ in range(_SAMPLES))


def _breakable(nodes: Sequence[Node]) -> list[DiskBreakable]:
    for node in nodes:
        if not isinstance(node, DiskBreakable):
            raise FaultError(f"the disk of {node.name} cannot be broken")
    return [node for node in nodes if isinstance(node, DiskBreakable)]


fault_class = SlowDisk
