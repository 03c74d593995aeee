"""A server process of a local cluster. Its powers are mixed in, one file each; see harness.clusters._node."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import tether, wire
from harness.clusters._jvm import Jvm
from harness.clusters._links import Links
from harness.clusters._mesh import Member, Mesh, Port
from harness.errors import ClusterError, WaitTimeout
from harness.waiting import wait_until

ASK_LIMIT_S = 2.0
_RESTART_LIMIT_S = 60.0
STOP_LIMIT_S = 60.0
_COMPLAINT = re.compile(r"\b(ERROR|FATAL)\b|Exception|^Error|Unrecognized|OutOfMemory")
_TAIL_BYTES = 256 * 1024


@dataclass(frozen=True)
class Options:
    """How the nodes of a cluster are laid out, so that faults find a way in. What is not asked for costs nothing."""

    fuse: bool = False  # data folders behind a file system of ours: disk faults, loss of power (root)
    clocks: bool = False  # wall clocks can be set (libfaketime)


PLAIN = Options()


class Server:
    """Killable, Stoppable and Pausable. Powers add to `environment`, `wrapped` and `residue`."""

    def __init__(
        self, member: Member, mesh: Mesh, links: Links, jvm: Jvm, folder: Path, options: Options
    ) -> None:
        self.member = member
        self.address = mesh.address(member)
        self.folder = folder
        self.links_of_cluster = links
        self.options = options
        self._jvm = jvm
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<{self.name} {self.address}>"

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.running() else None

    # Killable

    def launch(self) -> None:
        """Start the process; it is not ready yet when this returns."""
        command = self.wrapped(self._jvm.command(self.member, self.address, self.folder))
        self._process = tether.spawn(
            command,
            log=self.log,
            cwd=self.folder,
            pidfile=self._pidfile,
            env={**os.environ, **self.environment()},
        )

    def environment(self) -> Mapping[str, str]:
        """What the process needs in its environment."""
        return {}

    def wrapped(self, command: list[str | Path]) -> list[str | Path]:
        """The command that starts the process; a power may put another one before it. It has to keep the pid."""
        return command

    def residue(self) -> list[str]:
        """What is left of faults on this node, each in a few words; nothing on a node as it was at first."""
        return [f"{self.name} is paused"] if self.paused() else []

    def closed(self) -> None:
        """The cluster stops and the process is gone: give back everything else."""

    def shut_down(self, limit_s: float = STOP_LIMIT_S) -> int:
        """Ask the process to end by itself, and wait for it; its exit code."""
        if self._process is None:
            return 0
        if self.running():
            self._process.terminate()
        wait_until(lambda: not self.running(), limit_s, f"{self.name} did not end after SIGTERM")
        self._pidfile.unlink(missing_ok=True)
        return int(self._process.returncode)

    def kill(self) -> None:
        if self._process is not None:
            tether.end(self._process)
        self._pidfile.unlink(missing_ok=True)

    def restart(self) -> None:
        """Returns when the node takes part in the cluster again."""
        if self.running():
            return
        self.launch()
        try:
            wait_until(self.ready, _RESTART_LIMIT_S, lambda: f"{self.name} is not back; {self.complaint()}")
        except WaitTimeout as error:
            raise ClusterError(str(error)) from error

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def must_run(self) -> None:
        """Raises ClusterError if the process has ended."""
        if not self.running():
            code = None if self._process is None else self._process.returncode
            raise ClusterError(f"{self.name} ended with code {code}: {self.complaint()}")

    def ready(self) -> bool:
        """Whether the node, asked by itself, takes part; raises ClusterError if its process has ended."""
        self.must_run()
        try:
            return self._takes_part()
        except wire.WireError:
            return False

    def complaint(self) -> str:
        """The last line of the log that tells of trouble, and where the log is."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            lines = []
        told = [line for line in lines if _COMPLAINT.search(line)] or lines or ["its log is empty"]
        return f"{told[-1].strip()[:300]} (log: {self.log})"

    def _takes_part(self) -> bool:
        wire.api_versions((self.address, Port.CONTROLLER), ASK_LIMIT_S)
        return True

    @property
    def _pidfile(self) -> Path:
        return self.folder / "server.pid"

    # Pausable

    def pause(self) -> None:
        if self._process is not None and self.running():
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._process is not None and self.running():
            self._process.send_signal(signal.SIGCONT)

    def paused(self) -> bool:
        return self.running() and tether.is_stopped(self._process.pid if self._process else 0)
