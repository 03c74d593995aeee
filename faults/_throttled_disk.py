"""A disk with a low throughput: the fault `slow_disk` with `rate_kb_s`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from faults._disk import wait_takes_records
from faults._measure import able, wait_whole
from harness.contracts import Arena, Bite, DiskHarm, DiskThrottleable, Healing, Node
from harness.errors import ClusterError

_SAMPLES = 2
_MOST = 1.3  # times the rate: the tolerance of the measurement
_FREE = 2.0  # times the rate: the least throughput of a disk that is not throttled


@dataclass(frozen=True)
class Throttle:
    """A limit on the throughput of a disk, proved by the quickest sample.

    A busy machine makes some samples slower, but only a throttle makes all of them slow. A sample writes or reads as
    many bytes at once as the rate allows in a second.
    """

    harm: DiskHarm
    word: str  # names the operation in proofs
    rate_kb_s: int

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = _throttleable(nodes)
        for node in targets:
            wait_takes_records(arena, node)
        before = [self._quickest_kb_s(node) for node in targets]
        with ExitStack() as undo:
            for node in targets:
                undo.callback(node.release_disk, self.harm)
            ways = {node.throttle_disk(self.harm, self.rate_kb_s) for node in targets}
            yield self._bite(targets, before, "+".join(sorted(ways)))

    def _bite(self, targets: Sequence[DiskThrottleable], before: Sequence[float], way: str) -> Bite:
        if not targets:
            return Bite(False, "there was no disk to throttle")
        during = [self._quickest_kb_s(node) for node in targets]
        falls = [
            f"{self.word} at {node.name} fell from {fast:.0f} to {slow:.0f} KB/s (quickest of {_SAMPLES})"
            for node, fast, slow in zip(targets, before, during, strict=True)
        ]
        bit = min(before) >= _FREE * self.rate_kb_s and max(during) <= _MOST * self.rate_kb_s
        measured = {"before_kb_s": round(min(before), 1), "during_kb_s": round(max(during), 1)}
        return Bite(bit, "; ".join(falls), measured, way)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        targets = _throttleable(nodes)
        quickest: dict[str, float] = {}

        def still_slow() -> str | None:
            try:
                quickest.update({node.name: self._quickest_kb_s(node) for node in targets})
            except ClusterError as error:
                return str(error)
            slow = [f"{name} {kb_s:.0f} KB/s" for name, kb_s in quickest.items() if kb_s < self._free_kb_s]
            return f"{self.word} still slow at {', '.join(slow)}" if slow else None

        names = [node.name for node in nodes]
        well = f"{self.word} passes {self._free_kb_s:.0f} KB/s again"
        healing = wait_whole(arena, names, still_slow, well)
        after = {"after_kb_s": round(min(quickest.values()), 1)} if quickest else {}
        return replace(healing, measured={**healing.measured, **after})

    @property
    def _free_kb_s(self) -> float:
        return _FREE * self.rate_kb_s

    def _quickest_kb_s(self, node: DiskThrottleable) -> float:
        return max(node.disk_rate_kb_s(self.harm, self.rate_kb_s) for _ in range(_SAMPLES))


def _throttleable(nodes: Sequence[Node]) -> list[DiskThrottleable]:
    return able(nodes, DiskThrottleable, "the disk of {} cannot be throttled")
