"""A broken disk (EIO), or a disk that the kernel made read-only after an error (EROFS); or only one of several log folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from faults._cases import Case
from faults._disk import DeadDisk
from faults._folder import broken_folder, folder_healed
from harness.contracts import Arena, Bite, DiskHarm, FolderBreakable, Healing, Node
from harness.errors import UsageError
from harness.targets import leader_of


@dataclass(frozen=True)
class BrokenDisk(DeadDisk):
    """A broker ends when a write fails. If a read fails first, Kafka does not treat it as a disk failure: the broker
    keeps its partitions and refuses records for them.

    With `folder` (1 is the first) only that log folder breaks, on a cluster with several: the broker goes on without
    the partitions in it. The first folder contains the metadata, without which the broker ends.
    """

    read_only: bool = False
    folder: int = 0  # 0: the whole disk

    def __post_init__(self) -> None:
        if self.folder < 0 or self.folder == 1:
            raise UsageError(
                f"broken_disk: folder={self.folder} is not a folder that a broker can run without;"
                " choose 2 or more, or 0 for the whole disk"
            )
        if self.folder:
            object.__setattr__(self, "needs", FolderBreakable)

    @property
    def harm(self) -> DiskHarm:
        return DiskHarm.READ_ONLY if self.read_only else DiskHarm.BROKEN

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        held = (
            broken_folder(arena, nodes, self.harm, self.folder) if self.folder else super().hold(arena, nodes)
        )
        with held as bite:
            yield bite

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        return folder_healed(arena, nodes) if self.folder else super().healed(arena, nodes)

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "broken_disk", "read_only": self.read_only, "folder": self.folder}

    def __str__(self) -> str:
        return (
            "broken_disk" + ("-read_only" if self.read_only else "") + ("-one_folder" if self.folder else "")
        )


cases = (
    Case(BrokenDisk(), leader_of(0)),
    Case(BrokenDisk(folder=2), leader_of(0)),
)
fault_class = BrokenDisk
