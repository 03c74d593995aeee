"""Control groups, version 1 or 2: the group of a process, and groups with limits that onceproof makes as root.

A new group is made below or beside the group of the process, never elsewhere, so that limits from outside still
apply. Its name contains the harness that made it, so that leftovers of a killed harness can be found and removed.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import WaitTimeout
from harness.processes import child_process
from harness.processes.identity import pid_namespace
from harness.waiting import wait_until

CONTROLLERS = ("cpu", "memory", "blkio")  # by their names of version 1
_NAMES_2 = {"blkio": "io"}
_EMPTY_LIMIT_S = 10.0
_OURS = re.compile(r"onceproof-(\d+)-(\d+)-(\d+)-[0-9a-f]+")  # pid, start, pid namespace
_MOUNTS = Path("/proc/self/mounts")
_PROCESSES = Path("/proc")


@dataclass(frozen=True)
class Place:
    """The folder in which a group for a process can be made, and the present group of the process."""

    parent: Path
    home: Path
    version: int


@dataclass(frozen=True)
class Group:
    """A group made by onceproof; its processes move to `home` when it is removed."""

    folder: Path
    home: Path

    @classmethod
    def made(cls, place: Place, limits: Mapping[str, str]) -> Group:
        """Make a group with these limits in its files. Raises OSError if that is not permitted."""
        owner = child_process.identify(os.getpid())
        assert owner is not None
        named = f"{owner.pid}-{owner.start_ticks}-{owner.pid_namespace}"
        folder = place.parent / f"onceproof-{named}-{uuid.uuid4().hex[:8]}"
        folder.mkdir()
        group = cls(folder, place.home)
        try:
            for name, words in limits.items():
                (folder / name).write_text(f"{words}\n", encoding="ascii")
        except OSError:
            group.remove()
            raise
        return group

    def take(self, pid: int) -> None:
        (self.folder / "cgroup.procs").write_text(f"{pid}\n", encoding="ascii")

    def remove(self) -> None:
        """Move the processes back and remove the group, which is possible once the last has left."""
        if not self.folder.is_dir():
            return

        def gone() -> bool:
            for pid in (self.folder / "cgroup.procs").read_text(encoding="ascii").split():
                try:
                    (self.home / "cgroup.procs").write_text(f"{pid}\n", encoding="ascii")
                except ProcessLookupError:  # the process has just ended
                    continue
            return _removed(self.folder)

        wait_until(gone, _EMPTY_LIMIT_S, f"processes stay in {self.folder}")


@dataclass(frozen=True)
class Home:
    """The group of a process, with the files that report and limit its resources."""

    folder: Path
    version: int


def home_of(pid: int, controller: str) -> Home | None:
    """Return the group of the process for a controller; None if the kernel cannot limit that there."""
    here = _where(pid, controller)
    if here is None or not (
        here.version == 1 or _name(controller) in _words(here.folder / "cgroup.controllers")
    ):
        return None
    return here


def place_for(pid: int, controller: str) -> Place | None:
    """Return the place where a group with a limit can be made for this process; None if there is none."""
    here = _where(pid, controller)
    if here is None:
        return None
    if here.version == 1:
        return Place(here.folder, here.folder, 1)
    # Version 2 has processes only in leaves, so there the new group is a sibling.
    top = here.folder in {place for _version, _options, place in _hierarchies()}
    parent = here.folder if top else here.folder.parent
    handed_on = _name(controller) in _words(parent / "cgroup.subtree_control")
    return Place(parent, here.folder, 2) if handed_on else None


def sweep_groups() -> list[Path]:
    """Remove the groups of harnesses that have ended; their processes died with them.

    The kernel may keep a group for a moment longer: a killed process has lost its command line, but not yet its memory.
    """
    swept = []
    for version, options, top in _hierarchies():
        if version == 1 and not options & set(CONTROLLERS):
            continue
        for folder in sorted(top.glob("**/onceproof-*")):
            named = _OURS.fullmatch(folder.name)
            if named is None or int(named[3]) != pid_namespace():
                continue  # of a harness in another container, whose pids mean nothing here
            owner = child_process.identify(int(named[1]))
            if owner is not None and owner.start_ticks == int(named[2]):
                continue
            with suppress(WaitTimeout):  # the next start retries
                wait_until(lambda folder=folder: _removed(folder), _EMPTY_LIMIT_S, f"{folder} is in use")  # type: ignore[misc]
                swept.append(folder)
    return swept


def _where(pid: int, controller: str) -> Home | None:
    """Find the group, in version 1 if it has the controller, as version 2 then lacks it; None if the process has ended."""
    mounts = list(_hierarchies())
    try:
        memberships = (_PROCESSES / str(pid) / "cgroup").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    for line in memberships.splitlines():
        _number, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for version, options, top in mounts:
            if version == (1 if controllers else 2) and (version == 2 or controller in options):
                return Home(top / path.strip("/"), version)
    return None


def _hierarchies() -> Iterator[tuple[int, set[str], Path]]:
    for line in _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines():
        _device, place, kind, options = line.split()[:4]
        if kind in ("cgroup", "cgroup2"):
            yield 2 if kind == "cgroup2" else 1, set(options.split(",")), Path(place)


def _name(controller: str) -> str:
    return _NAMES_2.get(controller, controller)


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
