"""The folders in the cache folder where private engines keep their data and record what they made elsewhere."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import struct
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from harness.errors import SetupError
from harness.processes import child_process
from harness.runtime.cache import cache_dir, own_folder
from harness.waiting import wait_until

_EMPTY_LIMIT_S = 10.0
_PLACES = 16
_SHARES = 8 * 1024
_INTERFACES = Path("/sys/class/net")
_GROUPS = Path("/sys/fs/cgroup")
_DELETE_BRIDGE, _SET_FLAGS = 0x89A1, 0x8914  # SIOCBRDELBR, SIOCSIFFLAGS
_FATAL = re.compile(r"level=(fatal|error)|failed to start|^Error", re.IGNORECASE)


def sweep_engines() -> list[str]:
    """Remove what engines of killed harnesses have left on this machine; return what was removed."""
    done = []
    for folder in sorted((cache_dir() / "engines").glob("*/")):
        place = EngineFolder(folder)
        if not place.lock():
            continue
        try:
            done += [
                f"{folder}: removed {what} of an engine whose harness was killed" for what in place.clean()
            ]
        finally:
            place.release()
    return done


def left_behind() -> list[str]:
    """List what such engines made on this machine and no process uses now; empty after `sweep_engines`."""
    used: set[str] = set()
    for folder in (cache_dir() / "engines").glob("*/"):
        place = EngineFolder(folder)
        if place.lock():
            place.release()
        else:
            used |= {place.group, *place.noted("bridges"), *(Path(run).name for run in place.noted("run"))}
    made = [
        *_INTERFACES.glob("op-*"),
        *Path("/run").glob("onceproof-*"),
        *_GROUPS.glob("**/onceproof-docker-*"),
    ]
    return sorted(str(path) for path in made if path.name not in used)


class EngineFolder:
    """A folder for one engine at a time. A process that has its lock knows that the previous engine is abandoned."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: IO[str] | None = None

    @classmethod
    def take(cls) -> EngineFolder:
        for number in range(1, _PLACES + 1):
            place = cls(cache_dir() / "engines" / str(number))
            if place.lock():
                return place
        raise SetupError(
            f"{_PLACES} engines are already running, in {cache_dir() / 'engines'}; stop one of their harnesses"
        )

    @property
    def log(self) -> Path:
        return self.folder / "engine.log"

    @property
    def group(self) -> str:
        """The control group of all its containers."""
        return f"onceproof-docker-{uuid.uuid5(uuid.NAMESPACE_URL, str(self.folder)).hex[:8]}"

    def lock(self) -> bool:
        own_folder("engines")
        self.folder.mkdir(parents=True, exist_ok=True)
        file = (self.folder / "lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._lock = file
        return True

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def new_run_folder(self) -> Path:
        """Make a folder for sockets, whose paths must be short, and record it, so that it is removed later."""
        base = Path("/run") if os.access("/run", os.W_OK) else Path(tempfile.gettempdir())
        run = base / f"onceproof-{uuid.uuid4().hex[:8]}"
        self._note("run", str(run))
        run.mkdir(mode=0o700)
        return run

    def new_bridge(self) -> str:
        name = f"op-{uuid.uuid4().hex[:8]}"
        self._note("bridges", name)
        return name

    def clean(self) -> list[str]:
        """Remove what is recorded and still exists; return what that was."""
        self.thaw()
        ended = child_process.sweep(self.folder)
        removed = [f"process {identity.pid}" for identity in ended]
        removed += [f"bridge {name}" for name in self.noted("bridges") if _delete_bridge(name)]
        for run in self.noted("run"):
            if Path(run).is_dir():
                shutil.rmtree(run, ignore_errors=True)
                removed.append(run)
        removed += [f"control group {group}" for group in self._remove_groups()]
        # Otherwise the next engine would make the networks of the previous one again.
        shutil.rmtree(self.folder / "data" / "network", ignore_errors=True)
        for note in ("bridges", "run"):
            (self.folder / note).unlink(missing_ok=True)
        return removed

    def thaw(self) -> None:
        """Thaw all processes: a frozen process does not die (version 1 of control groups)."""
        for state in _GROUPS.glob(f"freezer/{self.group}/*/freezer.state"):
            with suppress(OSError):
                state.write_text("THAWED\n", encoding="ascii")

    def weigh(self) -> None:
        """Give the containers' group the CPU weight of several servers (version 1).

        All containers are one group, which would count as much as one thread of another process: on a busy machine
        containers would be slower than processes.
        """
        for top in (_GROUPS / "cpu", _GROUPS / "cpu,cpuacct"):
            with suppress(OSError):
                if top.is_dir():
                    (top / self.group).mkdir(exist_ok=True)
                    (top / self.group / "cpu.shares").write_text(f"{_SHARES}\n", encoding="ascii")

    def last_words(self) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            lines = []
        found = [line for line in lines if _FATAL.search(line)] or lines or ["its log is empty"]
        return f"{found[-1].strip()[:300]} (log: {self.log})"

    def _remove_groups(self) -> list[Path]:
        found = [top for top in [*_GROUPS.glob(self.group), *_GROUPS.glob(f"*/{self.group}")] if top.is_dir()]
        for top in found:
            wait_until(lambda top=top: _removed(top), _EMPTY_LIMIT_S, f"{top} is not empty")  # type: ignore[misc]
        return found

    def _note(self, what: str, text: str) -> None:
        with (self.folder / what).open("a", encoding="ascii") as file:
            file.write(f"{text}\n")

    def noted(self, what: str) -> Iterator[str]:
        with suppress(FileNotFoundError):
            yield from (self.folder / what).read_text(encoding="ascii").split()


def _delete_bridge(name: str) -> bool:
    if not (_INTERFACES / name).exists():
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", name.encode(), 0))  # down
        fcntl.ioctl(any_socket, _DELETE_BRIDGE, name.encode().ljust(16, b"\0"))
    return True


def _removed(group: Path) -> bool:
    """Remove the group and its children, deepest first, as only empty groups can be removed; return whether it is gone."""
    for folder in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
        with suppress(OSError):
            folder.rmdir()
    with suppress(OSError):
        group.rmdir()
    return not group.is_dir()
