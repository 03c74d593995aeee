"""An operator sets a retention that is far too short: records expire while consumers read them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import wait_whole
from faults._operators import NO_TARGET, WAY, Memory, names_of
from harness.contracts import Arena, Bite, Healing, Node
from harness.errors import ClusterError, UsageError, WaitTimeout
from harness.kafka.admin import Administrator
from harness.targets import leader_of
from harness.waiting import wait_until

_EXPIRY_LIMIT_S = 60.0
CHECKED_EVERY = "log.retention.check.interval.ms"


@dataclass(frozen=True)
class ShortRetention:
    """If `beyond_group` is set, it bites only when records expired that the group has not read.

    Brokers look for expired segments every five minutes: a cluster for this fault has to be started with
    `log.retention.check.interval.ms` of about a second, and first looks half a minute after its start.
    """

    retention_ms: int = 1
    segment_ms: int = 200  # the active segment expires only once a new one has begun
    beyond_group: bool = False
    needs: ClassVar[type] = Node
    requests: ClassVar[tuple[str, ...]] = ("DescribeConfigs", "IncrementalAlterConfigs")
    ways: ClassVar[Mapping[str, str]] = {WAY: f"brokers with a small {CHECKED_EVERY}"}
    deletes: ClassVar[bool] = True
    bites_when: ClassVar[str] = (
        "the log start offset of every partition that had records moved up, with beyond_group past the committed offset"
    )
    _memory: Memory = field(default_factory=Memory, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.retention_ms < 1 or self.segment_ms < 1:
            raise UsageError(
                f"short_retention: retention_ms={self.retention_ms}, segment_ms={self.segment_ms}; set at least 1"
            )

    @property
    def settings(self) -> dict[str, str]:
        return {"retention.ms": str(self.retention_ms), "segment.ms": str(self.segment_ms)}

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        admin = Administrator(arena.cluster, arena.topic)
        overrides = admin.overrides()
        before = {name: overrides.get(name) for name in self.settings}
        self._memory.keep(arena, nodes, before)
        with ExitStack() as undo:
            if nodes:
                undo.callback(admin.override, before)
            yield self._bite(arena, admin) if nodes else Bite(False, NO_TARGET)

    def _bite(self, arena: Arena, admin: Administrator) -> Bite:
        begun, limit_s = time.monotonic(), arena.patience * _EXPIRY_LIMIT_S
        try:
            before = {p: bounds for p, bounds in admin.offsets().items() if bounds[1] > bounds[0]}
            if not before:
                return Bite(False, f"{arena.topic} has no records to expire")
            admin.override(self.settings)
            least = {p: start for p, (start, _) in before.items()}
            if self.beyond_group:
                committed = admin.committed(arena.group)
                least = {p: max(start, committed.get(p, 0)) for p, start in least.items()}
            after = wait_until(lambda: _expired(admin, least), limit_s, "log starts stay", every_s=0.2)
        except WaitTimeout:
            remedy = f"start the brokers with a small {CHECKED_EVERY}"
            return Bite(
                False,
                f"after {limit_s:g} s a log still starts where {'the group has committed' if self.beyond_group else 'it did'}; {remedy}",
            )
        except ClusterError as error:
            return Bite(False, str(error))
        took = time.monotonic() - begun
        gone = {p: after[p][0] - before[p][0] for p in before}
        first = min(before)
        unread = sum(after[p][0] - least[p] for p in before) if self.beyond_group else 0
        proof = (
            f"{sum(gone.values())} offsets of {len(gone)} partitions expired within {took:.1f} s; "
            f"{arena.topic}-{first} starts at {after[first][0]} instead of {before[first][0]}"
        )
        measured = {"offsets_expired": float(sum(gone.values())), "expired_s": round(took, 3)}
        if self.beyond_group:
            proof += f"; {unread} of the offsets were beyond the group's committed ones"
            measured["beyond_committed"] = float(unread)
        return Bite(True, proof, measured, WAY)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """Wait until the topic has its old settings again; expired records stay deleted."""
        admin = Administrator(arena.cluster, arena.topic)
        before = self._memory.of(arena, nodes, dict.fromkeys(self.settings))

        def still_set() -> str | None:
            try:
                now = admin.overrides()
            except ClusterError as error:
                return str(error)
            left = [name for name, value in before.items() if now.get(name) != value]
            return f"{arena.topic} still has {', '.join(f'{n}={now.get(n)}' for n in left)}" if left else None

        return wait_whole(arena, names_of(nodes), still_set, "the topic has its old settings")

    def describe(self) -> Mapping[str, Any]:
        return {
            "fault": "short_retention",
            "retention_ms": self.retention_ms,
            "segment_ms": self.segment_ms,
            "beyond_group": self.beyond_group,
        }

    def __str__(self) -> str:
        return "short_retention-beyond_group" if self.beyond_group else "short_retention"


def _expired(admin: Administrator, least: Mapping[int, int]) -> dict[int, tuple[int, int]] | None:
    """The bounds once every log starts later than these offsets."""
    now = admin.offsets()
    return now if all(now[p][0] > offset for p, offset in least.items()) else None


cases = (Case(ShortRetention(), leader_of(0)),)
fault_class = ShortRetention
