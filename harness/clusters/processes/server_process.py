"""A server that is a process of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path

from harness.clusters.base.server import STOP_LIMIT_S, Server
from harness.processes import child_process
from harness.waiting import wait_until

_PAUSE_LIMIT_S = 10.0


class ServerProcess(Server):
    """A server process, which dies with the harness. Powers add to `environment` and `wrapped`."""

    _process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str | Path]:
        """Return the command that starts the server in its folder."""

    def environment(self) -> Mapping[str, str]:
        """Return the environment variables of the process."""
        return {}

    def wrapped(self, command: list[str | Path]) -> list[str | Path]:
        """Return the command that starts the process; a power may put words before it that keep the pid."""
        return command

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.running() else None

    def launch(self) -> None:
        self._process = child_process.spawn(
            self.wrapped(self.command()),
            log=self.log,
            cwd=self.folder,
            pidfile=self._pidfile,
            env={**os.environ, **self.environment()},
        )

    def exit_code(self) -> int | None:
        return None if self._process is None else self._process.returncode

    def shut_down(self, limit_s: float = STOP_LIMIT_S) -> int:
        """Ask the process to end, wait for it, and return its exit code."""
        if self._process is None:
            return 0
        if self.running():
            self._process.terminate()
        wait_until(lambda: not self.running(), limit_s, f"{self.name} did not end after SIGTERM")
        self._pidfile.unlink(missing_ok=True)
        return int(self._process.returncode)

    def kill(self) -> None:
        if self._process is not None:
            child_process.end(self._process)
        self._pidfile.unlink(missing_ok=True)

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def pause(self) -> None:
        """Stop the process; return when it has stopped: on a busy machine it runs for a moment after the signal."""
        if self._process is None or not self.running():
            return
        pid = self._process.pid
        self._process.send_signal(signal.SIGSTOP)
        wait_until(
            lambda: child_process.is_stopped(pid) or not self.running(),
            _PAUSE_LIMIT_S,
            f"{self.name} still runs after SIGSTOP",
            every_s=0.002,
        )

    def resume(self) -> None:
        if self._process is not None and self.running():
            self._process.send_signal(signal.SIGCONT)

    def paused(self) -> bool:
        return self.running() and child_process.is_stopped(self._process.pid if self._process else 0)

    @property
    def _pidfile(self) -> Path:
        return self.folder / "server.pid"
