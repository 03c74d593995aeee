"""The power over a node's wall clock: Skewable, by libfaketime.

The library is loaded into the process before anything else and reads from a file, once a second, by how much the clock
is wrong. Only the wall clock is changed: waiting and measuring of durations (the monotonic clock) stay as they are, as on
a machine whose time is set. Times of files stay real, too, or the JVM would refuse its class archive.

A clock that runs too fast or too slow is set anew each second: the library's own way, a factor, also changes how long
the process waits, and a JVM does not wait at all then.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import tether, wire
from harness.clusters._disked import PROBE_TOPIC
from harness.clusters._process import ServerProcess
from harness.clusters._server import ASK_LIMIT_S
from harness.errors import FaultError
from harness.provision.faketime import faketime
from harness.waiting import wait_until

_LOAD_LIMIT_S = 30.0
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


class Clocked(ServerProcess):
    _skew: Skew = RIGHT
    _drift: _Drift | None = None

    def wrapped(self, command: list[str | Path]) -> list[str | Path]:
        if not self.options.clocks:
            return super().wrapped(command)
        settings = {
            "LD_PRELOAD": faketime(),
            "FAKETIME_TIMESTAMP_FILE": self._clock,
            "FAKETIME_CACHE_DURATION": 0,  # it looks at the file once a second
            "FAKETIME_DONT_FAKE_MONOTONIC": 1,
            "FAKETIME_FORCE_MONOTONIC_FIX": 0,  # else waits with a limit end at once, and the JVM spins
            "NO_FAKE_STAT": 1,
            "LC_ALL": "C.UTF-8",  # numbers with a point
        }
        # By a command right before the JVM, so that the shell and setpriv on the way do not load it.
        words: list[str | Path] = ["env", *(f"{name}={value}" for name, value in settings.items())]
        return super().wrapped([*words, *command])

    def launch(self) -> None:
        if self.options.clocks:
            self._write()
        super().launch()
        if self.options.clocks:
            self._drop_shared_memory()

    def residue(self) -> list[str]:
        wrong = [f"the clock of {self.name} is set wrong"] if self._skew != RIGHT else []
        return super().residue() + wrong

    def closed(self) -> None:
        super().closed()
        self.right_clock()

    # Skewable

    def skew_clock(self, offset_s: float, rate: float = 1.0) -> None:
        if not self.options.clocks:
            raise FaultError(
                f"the clock of {self.name} cannot be set: the cluster was started without clocks"
            )
        self._set(Skew(offset_s, rate, time.time()))

    def right_clock(self) -> None:
        if self._skew != RIGHT:
            self._set(RIGHT)

    def clock_offset_s(self) -> float:
        """Asks the node for its time. A controller tells it only while it leads the quorum."""
        before = time.time()
        return self.told_time_ms() / 1000 - (before + time.time()) / 2

    def told_time_ms(self) -> int:
        if self.member.broker:
            place = self.member.id - 1
            return wire.append(self.control, PROBE_TOPIC, place, b"clock", timeout_s=10.0).time_ms
        return wire.quorum_leader_time_ms(self.controller, ASK_LIMIT_S)

    @property
    def _clock(self) -> Path:
        return self.folder / "clock"

    def _set(self, skew: Skew) -> None:
        if self._drift is not None:
            self._drift.end()
            self._drift = None
        self._skew = skew
        if self.options.clocks:
            self._write()
        if skew.rate != 1.0:
            self._drift = _Drift(self._write)

    def _write(self) -> None:
        partial = self._clock.with_suffix(".part")
        partial.write_text(self._skew.told(time.time()), encoding="ascii")
        partial.replace(self._clock)

    def _drop_shared_memory(self) -> None:
        """libfaketime makes two files for children of the process, of which there are none, and leaves them behind
        when it is killed. Whoever has opened them does not need their names.
        """
        pid = self.pid
        if pid is None:
            return

        def loaded() -> bool:
            try:
                maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
            except OSError:
                return True
            return "libjvm.so" in maps or not self.running()

        wait_until(loaded, _LOAD_LIMIT_S, f"{self.name} does not load its JVM", every_s=0.01)
        for file in shared_memory_of(pid):
            file.unlink(missing_ok=True)


class _Drift:
    """Writes the file again and again. It dies with the harness, and so does the node that reads it."""

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


def shared_memory_of(pid: int) -> list[Path]:
    return [_SHARED_MEMORY / f"faketime_shm_{pid}", _SHARED_MEMORY / f"sem.faketime_sem_{pid}"]


def sweep_shared_memory() -> None:
    """Remove what processes that are gone have left: it would keep the next one with the same pid from starting."""
    for file in _SHARED_MEMORY.glob("*faketime_s*"):
        named = _SHARED_NAME.fullmatch(file.name)
        if named and tether.identify(int(named[1])) is None:
            try:
                file.unlink(missing_ok=True)
            except PermissionError:  # of another user
                continue
