"""The harness's side of a broker's own file system (harness.clusters.disk.faulty_file_system): starts it and gives it orders.

It lives in a mount namespace of its own, which the broker joins. So the mount is in nobody else's mount table, and it
vanishes with the two processes, however they and the harness end. The broker's data folder as seen from outside of
the namespace is what lies below the mount, at the same path.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.clusters.disk.faulty_file_system import SOCKET
from harness.errors import ClusterError, FaultError, SetupError, WaitTimeout
from harness.machine import kernel
from harness.processes import child_process
from harness.provision.fuse import fuse
from harness.waiting import wait_until

_START_LIMIT_S = 20.0
_ASK_LIMIT_S = 30.0  # undoing takes a while when much was written
_LOG = "disk.log"
_PROJECT = Path(__file__).resolve().parents[3]


def must_be_possible() -> None:
    """Raises SetupError with the remedy where data folders cannot be put behind a file system of ours."""
    fuse()
    if why := trouble():
        raise SetupError(
            f"disks behind FUSE: {why}; run as root, with Debian's packages libfuse3-3 and util-linux"
        )


def trouble() -> str | None:
    """Why it cannot be done here; None where it can."""
    answer = kernel.fuse()
    if not answer.ok:
        return answer.reason
    missing = [name for name in ("unshare", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"no {' and no '.join(missing)} on the path"
    return None if find_spec("mfusepy") else "the Python package mfusepy is missing"


class Mount:
    """The file system of one broker; `node` is the folder that has the data folder in it."""

    def __init__(self, node: Path, data: Path) -> None:
        self._node = node
        self._data = data
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start it unless it runs; returns when it is mounted."""
        if self._runs():
            return
        must_be_possible()
        self._process = child_process.spawn(
            [*self._where(), sys.executable, "-m", "harness.clusters.disk.faulty_file_system", self._data],
            log=self._node / _LOG,
            cwd=self._node,
            pidfile=self._node / "disk.pid",
            env={**os.environ, "PYTHONPATH": str(_PROJECT), "FUSE_LIBRARY_NAME": "fuse3"},
        )
        try:
            wait_until(self._mounted, _START_LIMIT_S, lambda: self._last_words())
        except WaitTimeout as error:
            self.end()
            raise ClusterError(f"the file system under {self._data} did not come up: {error}") from error

    def inside(self, command: list[str | Path]) -> list[str | Path]:
        """The same command in the namespace that has the mount; every step keeps the pid."""
        self.ensure()
        assert self._process is not None
        enter: list[str | Path] = ["nsenter", "--target", str(self._process.pid), "--mount", "--"]
        # Entering a mount namespace leads to its root folder.
        return [*enter, "/bin/sh", "-c", 'cd "$0" && exec "$@"', self._node, *command]

    def ask(self, do: str, **told: object) -> dict[str, Any]:
        """Give one order; raises FaultError when it is not obeyed."""
        try:
            # By way of the folder's descriptor: the address of a socket has room for about a hundred characters.
            folder = os.open(self._node, os.O_RDONLY | os.O_DIRECTORY)
            try:
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.settimeout(_ASK_LIMIT_S)
                    connection.connect(f"/proc/self/fd/{folder}/{SOCKET}")
                    with connection.makefile("rwb") as lines:
                        lines.write(json.dumps({"do": do, **told}).encode() + b"\n")
                        lines.flush()
                        answer: dict[str, Any] = json.loads(lines.readline())
            finally:
                os.close(folder)
        except (OSError, ValueError) as error:
            raise FaultError(f"the file system under {self._data} does not answer: {error}") from error
        if "error" in answer:
            raise FaultError(f"the file system under {self._data} refused {do}: {answer['error']}")
        return answer

    def be(self, orders: Sequence[Mapping[str, object]]) -> None:
        """Do this wrong from now on and nothing else; see `_fuse.Order`. Nothing to do when it does not run."""
        if self._runs():
            self.ask("be", orders=orders)

    def harms(self) -> list[str]:
        """What it does wrong now; nothing also when it does not run."""
        return list(self.ask("status")["harms"]) if self._runs() else []

    def lose(self) -> Mapping[str, int]:
        """Forget what was not fsynced; how many files and bytes that were. Nothing is at risk when it does not run."""
        return self.ask("lose") if self._runs() else {"files": 0, "bytes": 0}

    def end(self) -> None:
        """After the broker has ended; the mount is gone with this process."""
        if self._process is not None:
            child_process.end(self._process)
        (self._node / "disk.pid").unlink(missing_ok=True)

    def _where(self) -> list[str]:
        """What is put before the command, so that it mounts where it shall."""
        return ["unshare", "--mount"]

    def _runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _mounted(self) -> bool:
        if not self._runs():
            raise ClusterError(f"the file system under {self._data} ended: {self._last_words()}")
        try:
            return bool(self.ask("status")["mounted"])
        except FaultError:
            return False

    def _last_words(self) -> str:
        try:
            lines = (self._node / _LOG).read_text(encoding="utf-8", errors="replace").split("\n")
        except FileNotFoundError:
            lines = []
        told = [line.strip() for line in lines if line.strip()] or ["it said nothing"]
        return f"{told[-1][:300]} (log: {self._node / _LOG})"
