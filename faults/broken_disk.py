"""A broken disk (EIO), or one that the kernel has made read-only after an error (EROFS)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from faults._disk import DeadDisk
from harness.contracts import DiskHarm


@dataclass(frozen=True)
class BrokenDisk(DeadDisk):
    """A broker ends when a write fails. When a read fails first, Kafka does not hold it for the disk's failure: it
    keeps its partitions and refuses records for them."""

    read_only: bool = False

    @property
    def harm(self) -> DiskHarm:
        return DiskHarm.READ_ONLY if self.read_only else DiskHarm.BROKEN

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "broken_disk", "read_only": self.read_only}

    def __str__(self) -> str:
        return "broken_disk-read_only" if self.read_only else "broken_disk"


fault_class = BrokenDisk
