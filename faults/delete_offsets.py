"""The group's committed offsets are gone: an operator deleted the group, or they expired (`offsets.retention.minutes`).

Both happen only to a group without members, so the members have to be dead when this fault begins. There is no undo.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import wait_whole
from faults._operators import NO_TARGET, WAY, WAYS, names_of
from harness.contracts import Arena, Bite, Healing, Node
from harness.errors import ClusterError, WaitTimeout
from harness.kafka.admin import Administrator
from harness.waiting import wait_until

_EMPTY_LIMIT_S = 60.0  # the coordinator removes a dead member when its session ends


@dataclass(frozen=True)
class DeleteOffsets:
    """Deletes the run's consumer group, whatever the target is. Bites when the group has no committed offsets left."""

    needs: ClassVar[type] = Node
    requests: ClassVar[tuple[str, ...]] = ("DeleteGroups",)
    ways: ClassVar[Mapping[str, str]] = WAYS
    bites_when: ClassVar[str] = "the group had committed offsets, and has none"

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        yield self._bite(arena) if nodes else Bite(False, NO_TARGET)

    def _bite(self, arena: Arena) -> Bite:
        admin = Administrator(arena.cluster, arena.topic)
        begun, limit_s = time.monotonic(), arena.patience * _EMPTY_LIMIT_S
        last = ""

        def deleted() -> bool:
            nonlocal last
            try:
                admin.delete_group(arena.group)
            except ClusterError as error:
                last = str(error)
                return False
            return True

        try:
            before = admin.committed(arena.group)
            if not before:
                return Bite(False, f"{arena.group} has committed nothing")
            wait_until(deleted, limit_s, "", every_s=0.2)
            left = admin.committed(arena.group)
        except WaitTimeout:
            return Bite(False, f"{arena.group} was not deleted in {limit_s:g} s: {last}")
        except ClusterError as error:
            return Bite(False, str(error))
        took = time.monotonic() - begun
        proof = f"{arena.group} had committed offsets {before}, {left or 'none'} {took:.1f} s later"
        return Bite(
            not left, proof, {"offsets_deleted": float(len(before)), "deleted_s": round(took, 3)}, WAY
        )

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """Wait until the cluster is whole; the offsets stay deleted until the group commits others."""
        return wait_whole(arena, names_of(nodes), lambda: None, "nothing is being deleted any more")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "delete_offsets"}

    def __str__(self) -> str:
        return "delete_offsets"


cases: tuple[Case, ...] = ()  # only a group without members has it: suites/hazards/offsets_expired.py
fault_class = DeleteOffsets
