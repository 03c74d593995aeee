"""Wall clocks of processes that can be set wrong, by libfaketime.

The library is loaded into the process before anything else and reads from a file, once a second, by how much the clock
is wrong. Only the wall clock is changed: waiting and measuring of durations (the monotonic clock) stay as they are, as on
a machine whose time is set. Times of files stay real, too, or a JVM would refuse its class archive.

A clock that runs too fast or too slow is set anew each second: the library's own way, a factor, also changes how long
the process waits, and a JVM does not wait at all then.
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

_DRIFT_EVERY_S = 0.25  # the library looks once a second
_SHARED_MEMORY = Path("/dev/shm")
_SHARED_NAME = re.compile(r"(?:faketime_shm_|sem\.faketime_sem_)(\d+)")


@dataclass(frozen=True)
class Skew:
    """A clock that was wrong by `offset_s` at the real time `since`, and runs at `rate`."""

    offset_s: float = 0.0
    rate: float = 1.0
    since: float = 0.0

    def told(self, now: float) -> str:
        """For libfaketime: how wrong the clock is now, in seconds."""
        return f"{self.offset_s + (self.rate - 1) * (now - self.since):+.3f}\n"


RIGHT = Skew()


class Clock:
    """The wall clock of one process and of those that are started in its place; `file` tells it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._drift: _Drift | None = None
        self.skew = RIGHT

    def under(self, command: Sequence[str | Path]) -> list[str | Path]:
        """The command that starts a process under this clock. Before that, the file has to be written."""
        from harness.provision.faketime import faketime  # not needed by the process under the clock

        settings = {
            "LD_PRELOAD": faketime(),
            "FAKETIME_TIMESTAMP_FILE": self._file,
            "FAKETIME_CACHE_DURATION": 0,  # it looks at the file once a second
            "FAKETIME_DONT_FAKE_MONOTONIC": 1,
            "FAKETIME_FORCE_MONOTONIC_FIX": 0,  # else waits with a limit end at once, and the JVM spins
            "NO_FAKE_STAT": 1,
            "LC_ALL": "C.UTF-8",  # numbers with a point
        }
        # By a command right before the process, so that the shell and setpriv on the way do not load it.
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
        partial.write_text(self.skew.told(time.time()), encoding="ascii")
        partial.replace(self._file)


class _Drift:
    """Writes the file again and again. It dies with the harness, and so does the process that reads it."""

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
    """Call it before the client library is loaded: what waits until a time of the wall clock would wait wrongly.

    librdkafka takes the time from what libfaketime changes and waits by what it does not (`cnd_timedwait`): with a clock
    that was ahead by a minute, a call of a second was seen to hang for a minute. So libraries that are loaded from now on use the C library itself, past libfaketime. Python and all that is written in it keep the
    wrong clock, such as what stamps records. `time.sleep` fails under libfaketime and is replaced.
    """
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)
    time.sleep = _sleep
    drop_shared_memory(os.getpid())


def _sleep(seconds: float | SupportsIndex) -> None:
    threading.Event().wait(float(seconds))


def wall_minus_monotonic_s() -> float:
    """What the wall clock of this process shows, against the clock that all processes of the machine share."""
    return time.time() - time.monotonic()


# --- what libfaketime leaves behind ----------------------------------------------------------------


def shared_memory_of(pid: int) -> list[Path]:
    return [_SHARED_MEMORY / f"faketime_shm_{pid}", _SHARED_MEMORY / f"sem.faketime_sem_{pid}"]


def drop_shared_memory(pid: int) -> None:
    """libfaketime makes two files for children of the process, of which there are none, and leaves them behind
    when it is killed. Whoever has opened them does not need their names.
    """
    for file in shared_memory_of(pid):
        file.unlink(missing_ok=True)


def sweep_shared_memory() -> None:
    """Remove what processes that are gone have left: it would keep the next one with the same pid from starting."""
    for file in _SHARED_MEMORY.glob("*faketime_s*"):
        named = _SHARED_NAME.fullmatch(file.name)
        if named and child_process.identify(int(named[1])) is None:
            with suppress(FileNotFoundError):  # another start has just removed it
                if file.lstat().st_uid == os.geteuid():
                    file.unlink()
