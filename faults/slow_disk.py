"""A slow disk: appends, fsyncs or reads take longer.

Kafka does not wait for fsync unless configured to (`flush.messages`), so producers notice slow appends. Consumers and
followers wait for reads, and producers with acks=all wait for followers. A rate instead of a delay applies to everything
that the broker has on that disk. It slows fsyncs, and reads of data that is not in memory, such as old records; appends go to memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from faults._cases import Case
from faults._disk import WAYS, wait_takes_records
from faults._measure import able, wait_whole
from faults._throttled_disk import Throttle
from harness.contracts import (
    Arena,
    Bite,
    DiskBreakable,
    DiskFault,
    DiskHarm,
    DiskThrottleable,
    Healing,
    Node,
    ReadSlowable,
)
from harness.errors import ClusterError, UsageError
from harness.targets import leader_of

_SAMPLES = 7
_LEAST_KB_S, _MOST_KB_S = 32, 800  # a second's worth has to fit into one record
_HARMS = {"append": DiskHarm.SLOW_APPEND, "fsync": DiskHarm.SLOW_FSYNC, "read": DiskHarm.SLOW_READ}


@dataclass(frozen=True)
class SlowDisk:
    """Bites when even the quickest of several appends, fsyncs or reads at each target takes `delay_ms`.

    The quickest counts, not the median: a busy machine makes some slower, but only a slow disk makes all of them slow.
    Before the fault the quickest has to take less than half of `delay_ms`; otherwise the effect is not measurable. With
    `rate_kb_s` nothing is delayed, but fsyncs or reads pass at most that many KB a second.
    """

    delay_ms: int = 50
    harm: str = "append"
    rate_kb_s: int = 0
    needs: ClassVar[type] = DiskBreakable
    ways: ClassVar[Mapping[str, str]] = {
        **WAYS,
        "blkio": "root, and containers with their data on a disk that is not behind FUSE; the only way for `rate_kb_s`",
    }
    bites_when: ClassVar[str] = (
        f"none of {_SAMPLES} appends, fsyncs or reads at each target is quicker than the delay;"
        " before, the quickest took less than half of it; with a rate: a second's worth of bytes takes a second,"
        " and took at most half of that before"
    )

    def __post_init__(self) -> None:
        if self.delay_ms < 10:
            raise UsageError(f"slow_disk: delay_ms={self.delay_ms} is too small to measure; set at least 10")
        if self.harm not in _HARMS:
            raise UsageError(f"slow_disk: unknown harm={self.harm!r}; choose one of {', '.join(_HARMS)}")
        if self.rate_kb_s and not _LEAST_KB_S <= self.rate_kb_s <= _MOST_KB_S:
            raise UsageError(
                f"slow_disk: rate_kb_s={self.rate_kb_s} cannot be measured; choose {_LEAST_KB_S} to {_MOST_KB_S}"
            )
        if self.rate_kb_s and self.harm == "append":
            raise UsageError("slow_disk: rate_kb_s needs harm=fsync or harm=read; appends go to memory")
        if self.rate_kb_s:
            object.__setattr__(self, "needs", DiskThrottleable)
        elif self.harm == "read":
            object.__setattr__(self, "needs", ReadSlowable)

    def hold(self, arena: Arena, nodes: Sequence[Node]) -> AbstractContextManager[Bite]:
        return self._throttle.hold(arena, nodes) if self.rate_kb_s else self._hold_delay(arena, nodes)

    @property
    def _throttle(self) -> Throttle:
        return Throttle(_HARMS[self.harm], self.harm, self.rate_kb_s)

    @contextmanager
    def _hold_delay(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = self._breakable(nodes)
        for node in targets:
            wait_takes_records(arena, node)
        before = [self._quickest_ms(node) for node in targets]
        how = DiskFault(_HARMS[self.harm], self.delay_ms, topics_prefix=arena.topic)
        with ExitStack() as undo:
            for node in targets:
                undo.callback(node.mend_disk, how.harm)
            ways = {node.break_disk(how) for node in targets}
            yield self._bite(targets, before, "+".join(sorted(ways)))

    def _bite(self, targets: Sequence[DiskBreakable], before: Sequence[float], way: str) -> Bite:
        if not targets:
            return Bite(False, "there was no disk to slow down")
        during = [self._quickest_ms(node) for node in targets]
        rises = [
            f"{self.harm} at {node.name} rose from {fast:.1f} to {slow:.1f} ms (quickest of {_SAMPLES})"
            for node, fast, slow in zip(targets, before, during, strict=True)
        ]
        bit = max(before) < self.delay_ms / 2 and min(during) >= self.delay_ms
        measured = {"before_ms": round(max(before), 2), "during_ms": round(min(during), 2)}
        return Bite(bit, "; ".join(rises), measured, way)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """Wait until one operation is quicker than the delay: while the disk is slow, none is."""
        if self.rate_kb_s:
            return self._throttle.healed(arena, nodes)
        targets = self._breakable(nodes)
        quickest: dict[str, float] = {}

        def still_slow() -> str | None:
            try:
                quickest.update({node.name: self._quickest_ms(node) for node in targets})
            except ClusterError as error:
                return str(error)
            slow = [f"{name} {took:.1f} ms" for name, took in quickest.items() if took >= self.delay_ms]
            return f"{self.harm} still slow at {', '.join(slow)}" if slow else None

        names = [node.name for node in nodes]
        well = f"{self.harm} takes less than {self.delay_ms} ms again"
        healing = wait_whole(arena, names, still_slow, well)
        after = {"after_ms": round(max(quickest.values()), 2)} if quickest else {}
        return replace(healing, measured={**healing.measured, **after})

    def _breakable(self, nodes: Sequence[Node]) -> list[DiskBreakable]:
        return able(nodes, self.needs, f"the disk of {{}} cannot be made slow for {self.harm}s")

    def _quickest_ms(self, node: DiskBreakable) -> float:
        return min(
            node.read_latency_ms()
            if isinstance(node, ReadSlowable) and self.harm == "read"
            else node.disk_latency_ms(_HARMS[self.harm])
            for _ in range(_SAMPLES)
        )

    def describe(self) -> Mapping[str, Any]:
        return {
            "fault": "slow_disk",
            "harm": self.harm,
            "delay_ms": self.delay_ms,
            "rate_kb_s": self.rate_kb_s,
        }

    def __str__(self) -> str:
        word = "slow_disk" if self.harm == "append" else f"slow_disk-{self.harm}"
        return f"{word}-rate" if self.rate_kb_s else word


cases = (
    Case(SlowDisk(), leader_of(0), hold_s=2.5),
    Case(SlowDisk(harm="fsync"), leader_of(0), hold_s=2.5),
    Case(SlowDisk(harm="read"), leader_of(0), hold_s=2.5),
)
fault_class = SlowDisk
