"""A full disk (ENOSPC): nothing more can be written, existing data can be read. The broker ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from faults._cases import Case
from faults._disk import DeadDisk
from harness.contracts import DiskHarm
from harness.targets import leader_of


@dataclass(frozen=True)
class FullDisk(DeadDisk):
    @property
    def harm(self) -> DiskHarm:
        return DiskHarm.FULL

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "full_disk"}

    def __str__(self) -> str:
        return "full_disk"


cases = (Case(FullDisk(), leader_of(0)),)
fault_class = FullDisk
