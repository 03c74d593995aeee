"""An operator deletes records below an offset. There is no undo: what is gone was deleted, not lost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._measure import wait_whole
from faults._operators import NOBODY, WAY, WAYS, names_of
from harness.contracts import Arena, Bite, Healing, Node
from harness.errors import ClusterError, UsageError, WaitTimeout
from harness.kafka.admin import Administrator
from harness.waiting import wait_until

Bounds = Mapping[int, tuple[int, int]]  # start and end of the log, by partition
SOMETHING_LIMIT_S = 5.0  # a group that is quick has read everything for moments


@dataclass(frozen=True)
class DeleteRecords:
    """Of each partition a `share` of what stands below the group's committed offset.

    With `beyond_group` all of that, and of what the group has not read yet the share.
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
            raise UsageError(f"delete_records: share={self.share:g} lies above 0 and is at most 1")

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        yield self._bite(arena) if nodes else Bite(False, NOBODY)

    def _bite(self, arena: Arena) -> Bite:
        admin = Administrator(arena.cluster, arena.topic)
        try:
            before, committed, below = wait_until(
                lambda: self._deletable(admin, arena.group), SOMETHING_LIMIT_S, "", every_s=0.05
            )
            admin.delete_records(below)
            after = admin.offsets()
        except WaitTimeout:
            what = "nothing that it has not read" if self.beyond_group else "nothing below what it committed"
            return Bite(False, f"there is nothing to delete: {arena.group} leaves {what}")
        except ClusterError as error:
            return Bite(False, str(error))
        gone = {p: after[p][0] - before[p][0] for p in below}
        unread = sum(max(0, after[p][0] - committed.get(p, 0)) for p in below)
        behind = {p: offset for p, offset in below.items() if after[p][0] < offset}
        if behind:
            return Bite(False, f"the logs of partitions {sorted(behind)} do not start where they should")
        deepest = max(gone, key=lambda p: gone[p])
        proof = (
            f"{sum(gone.values())} offsets of {len(gone)} partitions deleted, {unread} beyond what the group "
            f"committed; {arena.topic}-{deepest} starts at {after[deepest][0]} instead of {before[deepest][0]}"
        )
        measured = {"offsets_deleted": float(sum(gone.values())), "beyond_committed": float(unread)}
        return Bite(True, proof, measured, WAY)

    def _deletable(
        self, admin: Administrator, group: str
    ) -> tuple[Bounds, dict[int, int], dict[int, int]] | None:
        """Bounds, what the group committed, and up to where to delete; None while that is nothing."""
        bounds, committed = admin.offsets(), admin.committed(group)
        below = self.below(bounds, committed)
        return (bounds, committed, below) if below else None

    def below(self, bounds: Bounds, committed: Mapping[int, int]) -> dict[int, int]:
        """Up to where each partition is deleted; partitions where that is nothing are left out."""
        below = {}
        for partition, (start, end) in bounds.items():
            read = min(end, max(start, committed.get(partition, 0)))
            first, last = (read, end) if self.beyond_group else (start, read)
            if last > first:
                below[partition] = first + math.ceil(self.share * (last - first))
        return below

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """The records stay deleted; the copies of what is left have to be whole."""
        return wait_whole(arena, names_of(nodes), lambda: None, "nothing is being deleted any more")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "delete_records", "share": self.share, "beyond_group": self.beyond_group}

    def __str__(self) -> str:
        return "delete_records-beyond_group" if self.beyond_group else "delete_records"


fault_class = DeleteRecords
