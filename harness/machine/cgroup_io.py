"""Limits of a control group, version 1 or 2, on the bytes that it reads from a disk and writes to it in a second.

They slow operations that reach the disk at once: fsync, direct writes, reads of data that is not in memory. Writes that stay
in memory are as quick as before, and with version 1 the kernel later writes them to the disk without a limit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.errors import FaultError
from harness.machine.cgroup import Home, home_of

_DISKS = Path("/sys/dev/block")


class Io(StrEnum):
    READ = "read"
    WRITE = "write"


_FIELDS_2 = {Io.READ: "rbps", Io.WRITE: "wbps"}


@dataclass(frozen=True)
class IoGroup:
    home: Home
    disk: str  # as `disk_of` returns it

    def limit(self, io: Io, rate: int | None) -> None:
        """Limit to that many bytes a second; None: no limit. Raises FaultError if the limit cannot be set."""
        words = f"{_FIELDS_2[io]}={rate or 'max'}" if self.home.version == 2 else str(rate or 0)
        try:
            self._file(io).write_text(f"{self.disk} {words}\n", encoding="ascii")
        except OSError as error:
            raise FaultError(f"{io}s of {self.home.folder} cannot be limited: {error}") from error

    def limited(self, io: Io) -> int | None:
        """Return the kernel's limit in bytes a second; None without a limit, or if the group no longer exists."""
        try:
            lines = self._file(io).read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return None
        words = next((words for disk, *words in map(str.split, lines) if disk == self.disk), None)
        if words is None:
            return None
        rate = words[0] if self.home.version == 1 else dict(word.split("=") for word in words)[_FIELDS_2[io]]
        return None if rate == "max" else int(rate)

    def _file(self, io: Io) -> Path:
        return self.home.folder / ("io.max" if self.home.version == 2 else f"blkio.throttle.{io}_bps_device")


def trouble(folder: Path) -> str | None:
    """Return why reads and writes of processes there cannot be limited; None if they can."""
    if os.geteuid() != 0:
        return "only root may limit reads and writes"
    if home_of(os.getpid(), "blkio") is None:
        return "there is no control group for disks"
    try:
        disk_of(folder)
    except FaultError as error:
        return str(error)
    return None


def disk_of(folder: Path) -> str:
    """Return the numbers of the whole disk, as a partition cannot be limited; raise FaultError if there is no disk."""
    device = folder.stat().st_dev
    known = _DISKS / f"{os.major(device)}:{os.minor(device)}"
    if not known.exists():
        raise FaultError(f"{folder} is on no disk, so its reads and writes cannot be limited")
    whole = known.resolve()
    if (whole / "partition").exists():
        whole = whole.parent
    return (whole / "dev").read_text(encoding="ascii").strip()
