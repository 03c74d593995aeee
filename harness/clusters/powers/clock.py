"""The power over a node's wall clock: Skewable, by libfaketime (harness.machine.fake_clock)."""

from __future__ import annotations

import time
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from harness.clusters.base.composition import Power, Site, without
from harness.clusters.processes.server_process import ServerProcess
from harness.contracts import Skewable
from harness.machine.fake_clock import RIGHT, Clock, Skew, drop_shared_memory
from harness.provision import faketime
from harness.waiting import wait_until

_LOAD_LIMIT_S = 30.0


class Clocked(Power, ServerProcess):
    gives: ClassVar[type] = Skewable

    @classmethod
    def why_not(cls, site: Site, /) -> str | None:
        return None if site.options.clocks else faketime.trouble() or without("clocks=True")

    def wrapped(self, command: list[str | Path]) -> list[str | Path]:
        return super().wrapped(self._clock.under(command))

    def launch(self) -> None:
        self._clock.write()
        super().launch()
        self._drop_shared_memory()

    def residue(self) -> list[str]:
        wrong = [f"the clock of {self.name} is set wrong"] if self._clock.skew != RIGHT else []
        return super().residue() + wrong

    def closed(self) -> None:
        super().closed()
        self.right_clock()

    # Skewable

    def skew_clock(self, offset_s: float, rate: float = 1.0) -> None:
        self._clock.set(Skew(offset_s, rate, time.time()))

    def right_clock(self) -> None:
        self._clock.right()

    def clock_offset_s(self) -> float:
        """Ask the node for its time (see `reported_time_ms`) and return the offset."""
        before = time.time()
        return self.reported_time_ms() / 1000 - (before + time.time()) / 2

    @cached_property
    def _clock(self) -> Clock:
        return Clock(self.folder / "clock")

    def _drop_shared_memory(self) -> None:
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
        drop_shared_memory(pid)
