"""The power over a node's share of CPU time: Starvable, by a control group or, without root, by signals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import ClassVar

from harness.clusters.base.composition import Power
from harness.clusters.base.server import Server
from harness.clusters.processes.server_process import ServerProcess
from harness.contracts import Starvable
from harness.errors import FaultError
from harness.machine.cgroup import Group
from harness.machine.cgroup_cpu import CpuGroup, place_for

_TICK_S = 0.01
_CREDIT_S = 0.1  # most CPU time that an idle process saves up, in seconds of its share
_LONGEST_STOP_S = 1.0


class Starved(Power, ServerProcess):
    gives: ClassVar[type] = Starvable
    _share: float | None = None
    _group: Group | None = None
    _throttle: Throttle | None = None
    _asleep: bool = False  # paused by another fault, not by the throttle

    def launch(self) -> None:
        self._asleep = False
        super().launch()
        if self._share is not None:  # it was restarted while it is starved
            self._stop_starving()
            self._begin_starving(self._share)

    def closed(self) -> None:
        super().closed()
        self.feed()

    def residue(self) -> list[str]:
        starved = [f"{self.name} is starved"] if self._share is not None else []
        return super().residue() + starved

    # Starvable

    def starve(self, cpu_share: float) -> str:
        self.feed()
        self._share = cpu_share
        return self._begin_starving(cpu_share)

    def feed(self) -> None:
        self._share = None
        self._stop_starving()

    def cpu_under_load(self, for_s: float) -> float:
        return cpu_under_load(self, for_s)

    def _begin_starving(self, share: float) -> str:
        pid = self.pid
        if pid is None:
            return "nothing"
        place = place_for(pid)
        if place is not None:
            try:
                self._group = CpuGroup.make(place, share)
                self._group.take(pid)
                return "cgroup"
            except OSError:  # not root, or not allowed inside this container
                self._stop_starving()
        self._throttle = Throttle(pid, share, stop=super().pause, go_on=self._go_on)
        return "signals"

    def _stop_starving(self) -> None:
        if self._group is not None:
            self._group.remove()
            self._group = None
        if self._throttle is not None:
            self._throttle.end()
            self._throttle = None

    def _go_on(self) -> None:
        if not self._asleep:
            super().resume()

    # Pausable: the throttle stops the process too

    def pause(self) -> None:
        self._asleep = True
        super().pause()

    def resume(self) -> None:
        self._asleep = False
        super().resume()

    def paused(self) -> bool:
        return super().paused() and (self._throttle is None or self._asleep)


class Throttle:
    """Stops a process whenever it has used more than its share, and resumes it after it has waited long enough.

    It is a thread of the harness: if the harness is killed, the kernel also kills the process, stopped or not.
    """

    def __init__(
        self, pid: int, share: float, *, stop: Callable[[], None], go_on: Callable[[], None]
    ) -> None:
        self._pid, self._share, self._stop, self._go_on = pid, share, stop, go_on
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"throttle-{pid}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            credit, looked, used = 0.0, time.monotonic(), cpu_seconds(self._pid)
            while not self._over.wait(_TICK_S):
                now, used_now = time.monotonic(), cpu_seconds(self._pid)
                credit += self._share * (now - looked) - (used_now - used)
                credit = min(credit, self._share * _CREDIT_S)
                looked, used = now, used_now
                if credit < 0:
                    self._stop()
                    self._over.wait(min(-credit / self._share, _LONGEST_STOP_S))
                    self._go_on()
        except OSError:  # the process has ended
            pass
        finally:
            self._go_on()


def cpu_under_load(server: Server, for_s: float) -> float:
    """Return the number of processors that the server used under more load than it can serve."""
    pid = server.pid
    if pid is None:
        raise FaultError(f"{server.name} does not run")
    begun, before = time.monotonic(), cpu_seconds(pid)
    server.keep_busy(for_s)
    try:
        return (cpu_seconds(pid) - before) / (time.monotonic() - begun)
    except OSError:
        raise FaultError(f"{server.name} ended under load") from None


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process on all processors, to the nanosecond (its CPU clock; man clock_getres).

    Raises OSError if the process does not exist.
    """
    return time.clock_gettime((~pid << 3) | 2)
