"""Processes that cannot outlive the harness, not even when it is killed with SIGKILL.

A child asks the kernel to kill it when its parent dies (PR_SET_PDEATHSIG). The kernel means the parent
*thread*, so every process of this harness is started by one thread that lives as long as the harness. A list
in the cache folder is the second line of defence: it names the processes that a crashed harness may have left, and
`sweep` ends exactly these. Pid files next to logs are for people; no process is ended because of them.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO

from harness.errors import OnceproofError
from harness.processes import process_list
from harness.processes.identity import Identity, identify, read_pidfile
from harness.waiting import wait_until

__all__ = ["Identity", "end", "identify", "is_stopped", "read_pidfile", "spawn", "sweep", "write_pidfile"]

_PR_SET_PDEATHSIG = 1
# If the parent died before the request to the kernel, the child would never be ended: it checks its parent again.
_CHECK = 'test "$PPID" = "$0" || exit 127; exec "$@"'
_Task = tuple[Callable[[], "subprocess.Popen[bytes]"], "Future[subprocess.Popen[bytes]]"]


def is_stopped(pid: int) -> bool:
    """Return whether the kernel reports the process as stopped by a signal."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat[stat.rindex(")") + 2] in "Tt"


class _Spawner:
    """One thread that starts every process; they live as long as the thread."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="tether-spawner", daemon=True).start()

    def run(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        future: Future[subprocess.Popen[bytes]] = Future()
        self._tasks.put((start, future))
        return future.result()

    def _work(self) -> None:
        while True:
            start, future = self._tasks.get()
            try:
                future.set_result(start())
            except BaseException as error:  # noqa: BLE001 - handed to the thread that asked, which raises it
                future.set_exception(error)


_spawner: _Spawner | None = None
_spawner_lock = threading.Lock()


def _the_spawner() -> _Spawner:
    global _spawner
    with _spawner_lock:
        if _spawner is None:
            _spawner = _Spawner()
        return _spawner


def _forget_spawner() -> None:
    """Forget the thread after a fork: it does not exist in the child, which needs its own."""
    global _spawner, _spawner_lock
    _spawner = None
    _spawner_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_spawner)


def spawn(
    argv: Sequence[str | Path],
    *,
    log: Path | None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    pidfile: Path | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a process that dies with this one, however this one dies.

    Its output is appended to `log` (None: dropped). It leads its own session, so that a Ctrl-C at the
    terminal reaches only the harness, which then ends its processes in order.
    """
    words = [str(word) for word in argv]
    if shutil.which(words[0], path=None if env is None else env.get("PATH")) is None:
        raise OnceproofError(f"cannot start {words[0]}: program not found")
    setpriv = shutil.which("setpriv")
    if setpriv:
        words = [setpriv, "--pdeathsig", "KILL", "--", "/bin/sh", "-c", _CHECK, str(os.getpid()), *words]

    def start() -> subprocess.Popen[bytes]:
        output: int | IO[bytes] = subprocess.DEVNULL if log is None else log.open("ab")
        try:
            return subprocess.Popen(
                words,
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if env is None else dict(env),
                cwd=cwd,
                start_new_session=True,
                preexec_fn=None if setpriv else _die_with_parent(os.getpid()),
            )
        finally:
            if not isinstance(output, int):
                output.close()

    process = _the_spawner().run(start)
    if pidfile is not None:
        write_pidfile(pidfile, process)
    return process


def _die_with_parent(parent: int) -> Callable[[], None]:
    """Return the same request to the kernel for a machine without setpriv, made between fork and exec."""
    libc = ctypes.CDLL(None, use_errno=True)

    def ask() -> None:
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
            os._exit(127)  # the parent died before the request: nothing would end this process

    return ask


def write_pidfile(pidfile: Path, process: subprocess.Popen[bytes]) -> None:
    """Record the process: in a pid file next to its logs, and in the list of processes that a sweep may end."""
    identity = identify(process.pid)
    if identity is None:
        return  # the process has already ended: nothing to sweep
    pidfile.parent.mkdir(parents=True, exist_ok=True)
    pidfile = pidfile.parent.resolve() / pidfile.name
    process_list.note(pidfile, identity)
    partial = pidfile.with_name(pidfile.name + ".part")
    partial.write_text(json.dumps(identity.__dict__) + "\n", encoding="ascii")
    partial.replace(pidfile)


def end(process: subprocess.Popen[bytes], timeout_s: float = 10.0) -> None:
    """Kill the process with SIGKILL and wait until it has ended. Does nothing if it has already ended."""
    if process.poll() is None:
        process.kill()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        raise OnceproofError(
            f"process {process.pid} is still there {timeout_s:g} s after SIGKILL; see /proc/{process.pid}/stack"
        ) from None


def sweep(folder: Path, timeout_s: float = 10.0) -> list[Identity]:
    """End the processes that this harness, or ended harnesses of this user, started below `folder`; return those that ran.

    Only processes in the list in the cache folder (harness.processes.process_list) are ended, whatever pid files the folder
    contains. A process is killed only if its start time, the boot and the pid namespace match too, so never a process that
    merely got the same pid later.
    """
    ended: list[Identity] = []
    for pidfile, identity in process_list.below(folder):
        if identity.alive():
            _kill(identity.pid)
            wait_until(
                lambda identity=identity: not identity.alive(),  # type: ignore[misc]
                timeout_s,
                f"process {identity.pid} of {pidfile} is still there after SIGKILL",
            )
            ended.append(identity)
        if not pidfile.parent.is_symlink():
            pidfile.unlink(missing_ok=True)
    process_list.tidy()
    return ended


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError as error:
        if error.errno != errno.ESRCH:  # ESRCH: the process ended in between
            raise OnceproofError(f"cannot end process {pid} of a crashed run: {error.strerror}") from error
