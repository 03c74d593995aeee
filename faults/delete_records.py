"""An operator deletes records below an offset. There is no undo: the missing records were deleted, not lost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import wait_whole
from faults._operators import NO_TARGET, WAY, WAYS, names_of
from harness.contracts import Arena, Bite, Healing, Node
from harness.errors import ClusterError, UsageError, WaitTimeout
from harness.kafka.admin import Administrator
from harness.targets import leader_of
from harness.waiting import wait_until

Bounds = Mapping[int, tuple[int, int]]  # start and end of the log, by partition
_SOMETHING_LIMIT_S = 5.0  # a quick group has at times read everything


@dataclass(frozen=True)
class DeleteRecords:
    """Deletes, in each partition, a `share` of the records below the group's committed offset.

    With `beyond_group` it deletes all of those, and a `share` of the records that the group has not read yet.
    """

    share: float = 0.5
    beyond_group: bool = False
    needs: ClassVar[type] = Node
    requests: ClassVar[tuple[str, ...]] = ("DeleteRecords",)
    ways: ClassVar[Mapping[str, str]] = WAYS
    deletes: ClassVar[bool] = True
    bites_when: ClassVar[str] = "the log start offset moved up, with beyond_group past the committed offset"

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UsageError(f"delete_records: share={self.share:g}; set more than 0 and at most 1")

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        yield self._bite(arena) if nodes else Bite(False, NO_TARGET)

    def _bite(self, arena: Arena) -> Bite:
        admin = Administrator(arena.cluster, arena.topic)
        limit_s = arena.patience * _SOMETHING_LIMIT_S
        try:
            before, committed, below = wait_until(
                lambda: self._deletable(admin, arena.group), limit_s, "", every_s=0.05
            )
            admin.delete_records(below)
            after = admin.offsets()
        except WaitTimeout:
            what = (
                "has committed every record"
                if self.beyond_group
                else "has committed no offset above a log's start"
            )
            return Bite(False, f"there is nothing to delete: {arena.group} {what}")
        except ClusterError as error:
            return Bite(False, str(error))
        gone = {p: after[p][0] - before[p][0] for p in below}
        unread = sum(max(0, after[p][0] - committed.get(p, 0)) for p in below)
        behind = {p: offset for p, offset in below.items() if after[p][0] < offset}
        if behind:
            return Bite(
                False, f"the logs of partitions {sorted(behind)} start below the offset that was asked for"
            )
        deepest = max(gone, key=lambda p: gone[p])
        proof = (
            f"{sum(gone.values())} offsets of {len(gone)} partitions deleted, {unread} beyond the group's "
            f"committed offsets; {arena.topic}-{deepest} starts at {after[deepest][0]} instead of {before[deepest][0]}"
        )
        measured = {"offsets_deleted": float(sum(gone.values())), "beyond_committed": float(unread)}
        return Bite(True, proof, measured, WAY)

    def _deletable(
        self, admin: Administrator, group: str
    ) -> tuple[Bounds, dict[int, int], dict[int, int]] | None:
        """Return bounds, committed offsets, and the offsets to delete up to; None while there is nothing to delete."""
        bounds, committed = admin.offsets(), admin.committed(group)
        below = self.below(bounds, committed)
        return (bounds, committed, below) if below else None

    def below(self, bounds: Bounds, committed: Mapping[int, int]) -> dict[int, int]:
        """Return the offset up to which each partition is deleted, without partitions that have nothing to delete."""
        below = {}
        for partition, (start, end) in bounds.items():
            read = min(end, max(start, committed.get(partition, 0)))
            first, last = (read, end) if self.beyond_group else (start, read)
            if last > first:
                below[partition] = first + math.ceil(self.share * (last - first))
        return below

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """Wait until the copies of the remaining records are whole; the others stay deleted."""
        return wait_whole(arena, names_of(nodes), lambda: None, "nothing is being deleted any more")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "delete_records", "share": self.share, "beyond_group": self.beyond_group}

    def __str__(self) -> str:
        return "delete_records-beyond_group" if self.beyond_group else "delete_records"


cases = (Case(DeleteRecords(), leader_of(0)),)
fault_class = DeleteRecords
