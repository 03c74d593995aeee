"""Wall clocks of processes that can be set wrong, by libfaketime.

The library is loaded into the process before anything else and reads the offset of the clock from a file once a second.
Only the wall clock is changed: waits and durations (the monotonic clock) stay right, as on a machine whose time is set.
Times of files stay real too, or a JVM would refuse its class archive.

For a clock that runs too fast or too slow, the offset is written again every second: the library's own factor also changes
how long the process waits, and a JVM would not wait at all.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import SupportsIndex

from harness.processes import child_process

_DRIFT_EVERY_S = 0.25  # the library reads once a second
_SHARED_MEMORY = Path("/dev/shm")
_SHARED_NAME = re.compile(r"(?:faketime_shm_|sem\.faketime_sem_)(\d+)")


@dataclass(frozen=True)
class Skew:
    """A clock that was wrong by `offset_s` at the real time `since`, and runs at `rate`."""

    offset_s: float = 0.0
    rate: float = 1.0
    since: float = 0.0

    def as_offset(self, now: float) -> str:
        """Return the present offset of the clock in libfaketime's format, in seconds."""
        return f"{self.offset_s + (self.rate - 1) * (now - self.since):+.3f}\n"


RIGHT = Skew()


class Clock:
    """The wall clock of one process and its restarts; `file` contains its offset."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._drift: _Drift | None = None
        self.skew = RIGHT

    def under(self, command: Sequence[str | Path]) -> list[str | Path]:
        """Return the command that starts a process under this clock. The file has to be written before."""
        from harness.provision.faketime import faketime  # not needed by the process under the clock

        settings = {
            "LD_PRELOAD": faketime(),
            "FAKETIME_TIMESTAMP_FILE": self._file,
            "FAKETIME_CACHE_DURATION": 0,  # read the file once a second
            "FAKETIME_DONT_FAKE_MONOTONIC": 1,
            "FAKETIME_FORCE_MONOTONIC_FIX": 0,  # otherwise waits with a limit end at once, and the JVM spins
            "NO_FAKE_STAT": 1,
            "LC_ALL": "C.UTF-8",  # numbers with a decimal point
        }
        # Set by a command right before the process, so that the shell and setpriv do not load the library.
        return ["env", *(f"{name}={value}" for name, value in settings.items()), *command]

    def set(self, skew: Skew) -> None:
        if self._drift is not None:
            self._drift.end()
            self._drift = None
        self.skew = skew
        self.write()
        if skew.rate != 1.0:
            self._drift = _Drift(self.write)

    def right(self) -> None:
        if self.skew != RIGHT:
            self.set(RIGHT)

    def write(self) -> None:
        partial = self._file.with_name(f"{self._file.name}.part")
        partial.write_text(self.skew.as_offset(time.time()), encoding="ascii")
        partial.replace(self._file)


class _Drift:
    """A thread that writes the file repeatedly. It dies with the harness, and so does the process that reads it."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clock-drift", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(_DRIFT_EVERY_S):
            self._write()

    def end(self) -> None:
        self._over.set()
        self._thread.join()


# --- inside a Python process that runs under such a clock ------------------------------------------


def keep_waits_right() -> None:
    """Make libraries that are loaded after this call use the real clock; call it before the client library is loaded.

    librdkafka reads the clock that libfaketime changes, and waits with a function that it does not change
    (`cnd_timedwait`): with a clock ahead by a minute, a call of a second was seen to hang for a minute. So libraries
    loaded later use the C library directly, without libfaketime. Python code keeps the wrong clock, for example for
    record timestamps. `time.sleep` fails under libfaketime and is replaced.
    """
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)
    time.sleep = _sleep
    drop_shared_memory(os.getpid())


def _sleep(seconds: float | SupportsIndex) -> None:
    threading.Event().wait(float(seconds))


def wall_minus_monotonic_s() -> float:
    """Return this process's wall clock minus the monotonic clock, which all processes of the machine share."""
    return time.time() - time.monotonic()


# --- leftovers of libfaketime ----------------------------------------------------------------------


def shared_memory_of(pid: int) -> list[Path]:
    return [_SHARED_MEMORY / f"faketime_shm_{pid}", _SHARED_MEMORY / f"sem.faketime_sem_{pid}"]


def drop_shared_memory(pid: int) -> None:
    """Remove the two files that libfaketime makes for children of the process and leaves behind when it is killed.

    The process has no children, and a process that has opened the files does not need their names.
    """
    for file in shared_memory_of(pid):
        file.unlink(missing_ok=True)


def sweep_shared_memory() -> None:
    """Remove the files of ended processes: they would keep the next process with the same pid from starting."""
    for file in _SHARED_MEMORY.glob("*faketime_s*"):
        named = _SHARED_NAME.fullmatch(file.name)
        if named and child_process.identify(int(named[1])) is None:
            with suppress(FileNotFoundError):  # another start has just removed the file
                if file.lstat().st_uid == os.geteuid():
                    file.unlink()
