"""A Docker engine of this harness alone, which dies with it together with all that it runs.

It lives in namespaces of its own for processes and mounts: when its first process dies, the kernel ends the containers
and drops the mounts. It makes no default bridge, no packet filter rules and leaves forwarding as it is, so what can
outlive it is a bridge, empty control groups and a folder with sockets. Those are written down in its place in the cache
folder, and removed by whoever gets the place next; images stay there for him.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from harness import tether
from harness.errors import SetupError, WaitTimeout
from harness.provision.cache import cache_dir
from harness.waiting import wait_until

PROGRAMS_PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
_START_LIMIT_S = 60.0
_END_LIMIT_S = 10.0
_PLACES = 16
_SHARES = 8 * 1024
_INTERFACES = Path("/sys/class/net")
_GROUPS = Path("/sys/fs/cgroup")
_DELETE_BRIDGE, _SET_FLAGS = 0x89A1, 0x8914  # SIOCBRDELBR, SIOCSIFFLAGS
# Another engine's containerd, if there is one, is hidden: ours has to be inside of our namespaces.
_BEGIN = 'mkdir -p /run/containerd && mount -t tmpfs tmpfs /run/containerd && exec "$@"'
_FATAL = re.compile(r"level=(fatal|error)|failed to start|^Error", re.IGNORECASE)


class OwnEngine:
    """`start` one; it ends with this process at the latest."""

    def __init__(self, place: _Place, process: subprocess.Popen[bytes], run: Path) -> None:
        self._place = place
        self._process = process
        self._run = run

    @classmethod
    def start(cls, dockerd: Path, answers: Callable[[str], bool]) -> OwnEngine:
        place = _Place.take()
        place.clean()
        place.weigh()
        run = place.new_run_folder()
        (place.folder / "daemon.json").write_text("{}\n", encoding="ascii")  # not the machine's settings
        place.log.unlink(missing_ok=True)
        process = tether.spawn(
            [*_NAMESPACES, "/bin/sh", "-c", _BEGIN, "sh", *_reaper(), *_command(dockerd, place, run)],
            log=place.log,
            env={**os.environ, "PATH": PROGRAMS_PATH, "DOCKER_RAMDISK": ""},
            pidfile=place.folder / "engine.pid",
        )
        engine = cls(place, process, run)
        try:
            wait_until(
                lambda: engine._must_run() and answers(engine.url), _START_LIMIT_S, "it does not answer"
            )
        except (WaitTimeout, SetupError) as error:
            engine.end()
            raise SetupError(f"dockerd did not start: {error}; {place.last_words()}") from error
        atexit.register(engine.end)
        return engine

    @property
    def url(self) -> str:
        return f"unix://{self._run / 'docker.sock'}"

    @property
    def pid(self) -> int | None:
        """Of the first process inside of the namespaces."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        with suppress(OSError):
            for word in children.read_text(encoding="ascii").split():
                return int(word)
        return None

    def runs(self) -> bool:
        return self._process.poll() is None

    def new_bridge(self) -> str:
        """A name for a network's interface, written down before there is one."""
        return self._place.new_bridge()

    def end(self) -> None:
        """In order if it can, so that its data is whole; containers that are left die with it."""
        inner = self.pid
        if self.runs() and inner is not None:
            self._place.thaw()
            with suppress(ProcessLookupError):
                os.kill(inner, signal.SIGTERM)
            with suppress(WaitTimeout):
                wait_until(lambda: not self.runs(), _END_LIMIT_S, "")
        tether.end(self._process)
        self._place.clean()
        self._place.release()
        atexit.unregister(self.end)

    def _must_run(self) -> bool:
        if not self.runs():
            raise SetupError(f"it ended with code {self._process.returncode}")
        return True


def sweep_engines() -> list[str]:
    """Remove what engines whose harness was killed have left on this machine; says what."""
    done = []
    for folder in sorted((cache_dir() / "engines").glob("*/")):
        place = _Place(folder)
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
    """What such engines have made on this machine and nobody uses now; after `sweep_engines` there is nothing."""
    used: set[str] = set()
    for folder in (cache_dir() / "engines").glob("*/"):
        place = _Place(folder)
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


class _Place:
    """A folder for one engine at a time. Who has its lock knows that the engine before is nobody's any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: IO[str] | None = None

    @classmethod
    def take(cls) -> _Place:
        for number in range(1, _PLACES + 1):
            place = cls(cache_dir() / "engines" / str(number))
            if place.lock():
                return place
        raise SetupError(f"{_PLACES} engines run already, in {cache_dir() / 'engines'}")

    @property
    def log(self) -> Path:
        return self.folder / "engine.log"

    @property
    def group(self) -> str:
        """The control group that all its containers are in."""
        return f"onceproof-docker-{uuid.uuid5(uuid.NAMESPACE_URL, str(self.folder)).hex[:8]}"

    def lock(self) -> bool:
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
        """For sockets, whose paths have to be short; what is written down here is removed later."""
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
        """Remove what is written down and still there; says what that was."""
        self.thaw()
        ended = tether.sweep(self.folder)
        removed = [f"process {identity.pid}" for identity in ended]
        removed += [f"bridge {name}" for name in self.noted("bridges") if _delete_bridge(name)]
        for run in self.noted("run"):
            if Path(run).is_dir():
                shutil.rmtree(run, ignore_errors=True)
                removed.append(run)
        removed += [f"control group {group}" for group in self._remove_groups()]
        # The next engine here would make the networks of the one before anew.
        shutil.rmtree(self.folder / "data" / "network", ignore_errors=True)
        for note in ("bridges", "run"):
            (self.folder / note).unlink(missing_ok=True)
        return removed

    def thaw(self) -> None:
        """A frozen process does not die before it is thawed (version 1 of control groups)."""
        for state in _GROUPS.glob(f"freezer/{self.group}/*/freezer.state"):
            with suppress(OSError):
                state.write_text("THAWED\n", encoding="ascii")

    def weigh(self) -> None:
        """All containers are one group, and a group counts as much as one thread of anybody else: give it the weight
        of several servers, so that on a busy machine containers are not slower than processes (version 1).
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
        told = [line for line in lines if _FATAL.search(line)] or lines or ["its log is empty"]
        return f"{told[-1].strip()[:300]} (log: {self.log})"

    def _remove_groups(self) -> list[Path]:
        found = [top for top in [*_GROUPS.glob(self.group), *_GROUPS.glob(f"*/{self.group}")] if top.is_dir()]
        for top in found:
            wait_until(lambda top=top: _removed(top), _END_LIMIT_S, f"{top} is not empty")  # type: ignore[misc]
        return found

    def _note(self, what: str, text: str) -> None:
        with (self.folder / what).open("a", encoding="ascii") as file:
            file.write(f"{text}\n")

    def noted(self, what: str) -> Iterator[str]:
        with suppress(FileNotFoundError):
            yield from (self.folder / what).read_text(encoding="ascii").split()


_NAMESPACES = ("unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--")


def _command(dockerd: Path, place: _Place, run: Path) -> list[str | Path]:
    return [
        dockerd,
        "--config-file", place.folder / "daemon.json",
        "--data-root", place.folder / "data",
        "--exec-root", run / "exec",
        "--pidfile", run / "docker.pid",
        "--host", f"unix://{run / 'docker.sock'}",
        "--cgroup-parent", f"/{place.group}",
        "--bridge", "none",
        "--iptables=false",
        "--ip6tables=false",
        "--ip-forward=false",
        "--ip-masq=false",
    ]  # fmt: skip


def _reaper() -> list[str]:
    """The first process of a namespace has to bury those whose parents are gone; dockerd would not."""
    found = shutil.which("docker-init", path=PROGRAMS_PATH) or shutil.which("tini", path=PROGRAMS_PATH)
    return [found, "--"] if found else []


def _delete_bridge(name: str) -> bool:
    if not (_INTERFACES / name).exists():
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", name.encode(), 0))  # down
        fcntl.ioctl(any_socket, _DELETE_BRIDGE, name.encode().ljust(16, b"\0"))
    return True


def _removed(group: Path) -> bool:
    """Deepest first: only empty groups can be removed."""
    for folder in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
        with suppress(OSError):
            folder.rmdir()
    with suppress(OSError):
        group.rmdir()
    return not group.is_dir()
