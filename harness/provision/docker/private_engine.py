"""A Docker engine of this harness alone, which dies with it together with its containers.

It runs in its own namespaces for processes and mounts: when its first process dies, the kernel ends the containers
and removes the mounts. It makes no default bridge, no packet filter rules and leaves forwarding as it is, so only a
bridge, empty control groups and a folder with sockets can outlive it. These are recorded in its engine folder in the cache
folder, and removed by the next engine that uses the folder; images stay there for it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from harness.errors import SetupError, WaitTimeout
from harness.processes import child_process
from harness.provision.docker.engine_folders import EngineFolder
from harness.waiting import wait_until

PROGRAMS_PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
_START_LIMIT_S = 60.0
_END_LIMIT_S = 10.0
# Another engine's containerd, if there is one, is hidden: this engine's must be inside its namespaces.
_BEGIN = 'mkdir -p /run/containerd && mount -t tmpfs tmpfs /run/containerd && exec "$@"'


class OwnEngine:
    """A private engine, made by `start`; it ends with this process at the latest."""

    def __init__(self, place: EngineFolder, process: subprocess.Popen[bytes], run: Path) -> None:
        self._place = place
        self._process = process
        self._run = run

    @classmethod
    def start(cls, dockerd: Path, answers: Callable[[str], bool]) -> OwnEngine:
        place = EngineFolder.take()
        place.clean()
        place.weigh()
        run = place.new_run_folder()
        (place.folder / "daemon.json").write_text(
            "{}\n", encoding="ascii"
        )  # instead of the machine's settings
        place.log.unlink(missing_ok=True)
        process = child_process.spawn(
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
        """Return the pid of the first process inside the namespaces."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        with suppress(OSError):
            for word in children.read_text(encoding="ascii").split():
                return int(word)
        return None

    def runs(self) -> bool:
        return self._process.poll() is None

    def new_bridge(self) -> str:
        """Return a name for a network's interface, recorded before the interface is made."""
        return self._place.new_bridge()

    def end(self) -> None:
        """End the engine, cleanly if possible, so that its data is whole; remaining containers die with it."""
        inner = self.pid
        if self.runs() and inner is not None:
            self._place.thaw()
            with suppress(ProcessLookupError):
                os.kill(inner, signal.SIGTERM)
            with suppress(WaitTimeout):
                wait_until(lambda: not self.runs(), _END_LIMIT_S, "")
        child_process.end(self._process)
        self._place.clean()
        self._place.release()
        atexit.unregister(self.end)

    def _must_run(self) -> bool:
        if not self.runs():
            raise SetupError(f"it ended with code {self._process.returncode}")
        return True


_NAMESPACES = ("unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--")


def _command(dockerd: Path, place: EngineFolder, run: Path) -> list[str | Path]:
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
    """Return the command of a minimal init: the first process of a namespace must reap orphans; dockerd does not."""
    found = shutil.which("docker-init", path=PROGRAMS_PATH) or shutil.which("tini", path=PROGRAMS_PATH)
    return [found, "--"] if found else []
