"""A control group that limits how much of the processors a process gets, version 1 or 2, where root may make one.

It lies below or beside the group in which the process is, never elsewhere, so that limits from outside still hold. Its
name tells which harness made it, so that what a killed one left can be found and removed.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import tether
from harness.waiting import wait_until

_PERIOD_US = 100_000
_EMPTY_LIMIT_S = 10.0
_OURS = re.compile(r"onceproof-(\d+)-(\d+)-[0-9a-f]+")
_MOUNTS = Path("/proc/self/mounts")
_PROCESSES = Path("/proc")


@dataclass(frozen=True)
class Place:
    """Where a group for a process can be made, and where the process is now."""

    parent: Path
    home: Path
    version: int


@dataclass(frozen=True)
class CpuGroup:
    folder: Path
    home: Path

    @classmethod
    def make(cls, place: Place, share: float) -> CpuGroup:
        """Raises OSError where it may not be made."""
        owner = tether.identify(os.getpid())
        assert owner is not None
        folder = place.parent / f"onceproof-{owner.pid}-{owner.start_ticks}-{uuid.uuid4().hex[:8]}"
        folder.mkdir()
        group = cls(folder, place.home)
        quota_us = max(1000, round(share * _PERIOD_US))
        try:
            if place.version == 2:
                (folder / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}\n")
            else:
                (folder / "cpu.cfs_period_us").write_text(f"{_PERIOD_US}\n")
                (folder / "cpu.cfs_quota_us").write_text(f"{quota_us}\n")
        except OSError:
            group.remove()
            raise
        return group

    def take(self, pid: int) -> None:
        (self.folder / "cgroup.procs").write_text(f"{pid}\n")

    def remove(self) -> None:
        """Let the processes go home; a group can only be removed once the last has left."""
        if not self.folder.is_dir():
            return

        def gone() -> bool:
            for pid in (self.folder / "cgroup.procs").read_text().split():
                try:
                    (self.home / "cgroup.procs").write_text(f"{pid}\n")
                except ProcessLookupError:  # it has just ended
                    continue
            return _removed(self.folder)

        wait_until(gone, _EMPTY_LIMIT_S, f"processes stay in {self.folder}")


def place_for(pid: int) -> Place | None:
    """Where a group with a limit can be made for this process; None if this machine has no such place."""
    mounts = dict(_hierarchies())
    for line in (_PROCESSES / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines():
        _number, controllers, path = line.split(":", 2)
        version = 1 if controllers else 2
        if version not in mounts or (version == 1 and "cpu" not in controllers.split(",")):
            continue
        home = mounts[version] / path.strip("/")
        # Version 2 has processes only in leaves, so there the new group is a sister.
        parent = home if version == 1 or path == "/" else home.parent
        if version == 1 or "cpu" in _words(parent / "cgroup.subtree_control"):
            return Place(parent, home, version)
    return None


def sweep_groups() -> list[Path]:
    """Remove the groups of harnesses that are gone; their processes died with them."""
    swept = []
    for _version, top in _hierarchies():
        for folder in sorted(top.glob("**/onceproof-*")):
            named = _OURS.fullmatch(folder.name)
            owner = tether.identify(int(named[1])) if named else None
            if named and (owner is None or owner.start_ticks != int(named[2])) and _removed(folder):
                swept.append(folder)
    return swept


def _hierarchies() -> Iterator[tuple[int, Path]]:
    for line in _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines():
        _device, place, kind, options = line.split()[:4]
        if kind == "cgroup" and "cpu" in options.split(","):
            yield 1, Path(place)
        elif kind == "cgroup2":
            yield 2, Path(place)


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except OSError:
        return []


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # a process is still in it
        return False
    return True
