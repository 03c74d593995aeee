"""An operator adds partitions to the topic. This cannot be undone: from then on keys map to other partitions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import HEAL_LIMIT_S, wait_whole
from faults._operators import NO_TARGET, WAY, WAYS, names_of
from harness.contracts import Arena, Bite, Healing, Node
from harness.errors import ClusterError, UsageError, WaitTimeout
from harness.kafka.admin import Administrator
from harness.targets import leader_of
from harness.waiting import wait_until

_WRITTEN_LIMIT_S = (
    60.0  # librdkafka looks for new partitions every 5 minutes by default, the workers' every 5 s
)


@dataclass(frozen=True)
class AddPartitions:
    """Adds `more` partitions to the topic under test, whatever the target is.

    With `written` it bites only when each of them has that many records: clients learn of new partitions at different times.
    """

    more: int = 1
    written: int = 0
    needs: ClassVar[type] = Node
    requests: ClassVar[tuple[str, ...]] = ("CreatePartitions",)
    ways: ClassVar[Mapping[str, str]] = WAYS
    bites_when: ClassVar[str] = "the new partitions have leaders that serve them, and all replicas in sync"

    def __post_init__(self) -> None:
        if self.more < 1:
            raise UsageError(f"add_partitions: more={self.more} adds nothing; set at least 1")
        if self.written < 0:
            raise UsageError(f"add_partitions: written={self.written}; set 0 or more")

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        yield self._bite(arena) if nodes else Bite(False, NO_TARGET)

    def _bite(self, arena: Arena) -> Bite:
        admin = Administrator(arena.cluster, arena.topic)
        before = len(admin.states())
        after = before + self.more
        begun, limit_s = time.monotonic(), arena.patience * HEAL_LIMIT_S
        try:
            admin.grow(after)
            wait_until(lambda: _serves(admin, after), limit_s, f"not all of {after} partitions serve")
            took = time.monotonic() - begun
            least = f"not all of the new partitions have {self.written} records"
            wait_until(lambda: self._written(admin, before), arena.patience * _WRITTEN_LIMIT_S, least)
        except (ClusterError, WaitTimeout) as error:
            return Bite(False, str(error))
        measured = {
            "partitions_before": float(before),
            "partitions_after": float(after),
            "serving_s": round(took, 3),
        }
        proof = f"{before} partitions became {after}, all led after {took:.1f} s"
        if self.written:
            proof += f"; each new one has {self.written} records {time.monotonic() - begun:.1f} s after it was added"
        return Bite(True, proof, measured, WAY)

    def _written(self, admin: Administrator, before: int) -> bool:
        if not self.written:
            return True
        bounds = admin.offsets()
        return all(end >= self.written for partition, (_, end) in bounds.items() if partition >= before)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """Wait until all partitions are whole; the added ones stay."""
        return wait_whole(arena, names_of(nodes), lambda: None, "all partitions are led, the new ones too")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "add_partitions", "more": self.more, "written": self.written}

    def __str__(self) -> str:
        return "add_partitions" if self.more == 1 else f"add_partitions-{self.more}"


def _serves(admin: Administrator, partitions: int) -> bool:
    """Return whether all partitions exist, are in sync and serve.

    In-sync sets are full before the leaders have opened their logs; a leader that reports an end offset has.
    """
    try:
        states = admin.states()
        whole = all(state.leader and set(state.in_sync) == set(state.replicas) for state in states)
        return whole and len(states) == partitions == len(admin.offsets())
    except ClusterError:
        return False


cases = (Case(AddPartitions(), leader_of(0)),)
fault_class = AddPartitions
