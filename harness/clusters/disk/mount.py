"""The harness's side of a broker's file system (harness.clusters.disk.faulty_file_system): starts it and sends it orders.

It runs in its own mount namespace, which the broker joins. So no other process has the mount in its mount table, and it
ends with the two processes, however they and the harness end. From outside of the namespace, the same path shows the
files below the mount.
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
_ASK_LIMIT_S = 30.0  # an undo takes a while when much was written
_LOG = "disk.log"
_PROJECT = Path(__file__).resolve().parents[3]


def must_be_possible() -> None:
    """Raise SetupError with the remedy if data folders cannot be put behind FUSE on this machine."""
    fuse()
    if why := trouble():
        raise SetupError(f"FUSE disks: {why}; run as root, with Debian's packages libfuse3-3 and util-linux")


def possible() -> bool:
    """Return whether FUSE disks are possible; as root on Debian, install the library first."""
    fuse()
    return trouble() is None


def trouble() -> str | None:
    """Return why FUSE disks are not possible on this machine; None if they are."""
    answer = kernel.fuse()
    if not answer.ok:
        return answer.reason
    missing = [name for name in ("unshare", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"no {' and no '.join(missing)} on the path"
    return None if find_spec("mfusepy") else "the Python package mfusepy is missing"


class Mount:
    """The file system of one broker; `node` is the folder that contains the data folder."""

    def __init__(self, node: Path, data: Path) -> None:
        self._node = node
        self._data = data
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start the file system unless it runs; return when it is mounted."""
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
        """Return a command that runs in the namespace with the mount; every step keeps the pid."""
        self.ensure()
        assert self._process is not None
        enter: list[str | Path] = ["nsenter", "--target", str(self._process.pid), "--mount", "--"]
        # Entering a mount namespace changes to its root folder.
        return [*enter, "/bin/sh", "-c", 'cd "$0" && exec "$@"', self._node, *command]

    def ask(self, do: str, **order: object) -> dict[str, Any]:
        """Send one order and return the answer; raise FaultError if it is refused or not answered."""
        try:
            # Through the folder's descriptor: the address of a socket is limited to about a hundred characters.
            folder = os.open(self._node, os.O_RDONLY | os.O_DIRECTORY)
            try:
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.settimeout(_ASK_LIMIT_S)
                    connection.connect(f"/proc/self/fd/{folder}/{SOCKET}")
                    with connection.makefile("rwb") as lines:
                        lines.write(json.dumps({"do": do, **order}).encode() + b"\n")
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
        """Set the faults of the disk to exactly these (see `faulty_file_system.Order`), if the file system runs."""
        if self._runs():
            self.ask("be", orders=orders)

    def harms(self) -> list[str]:
        """Return the harms in place; empty if the file system does not run."""
        return list(self.ask("status")["harms"]) if self._runs() else []

    def lose(self) -> Mapping[str, int]:
        """Drop what was not fsynced; return the number of files and bytes, which are 0 if it does not run."""
        return self.ask("lose") if self._runs() else {"files": 0, "bytes": 0}

    def end(self) -> None:
        """End the process, and the mount with it, after the broker has ended."""
        if self._process is not None:
            child_process.end(self._process)
        (self._node / "disk.pid").unlink(missing_ok=True)

    def _where(self) -> list[str]:
        """Return the words before the command that make it mount in the right namespace."""
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
        written = [line.strip() for line in lines if line.strip()] or ["its log is empty"]
        return f"{written[-1][:300]} (log: {self._node / _LOG})"
