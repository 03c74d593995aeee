"""A full disk (ENOSPC): nothing more can be written, existing data can be read. The broker ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from faults._disk import DeadDisk
from harness.contracts import DiskHarm


@dataclass(frozen=True)
class FullDisk(DeadDisk):
    @property
    def harm(self) -> DiskHarm:
        return DiskHarm.FULL

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "full_disk"}

    def __str__(self) -> str:
        return "full_disk"


fault_class = FullDisk
