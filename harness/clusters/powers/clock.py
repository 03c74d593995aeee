"""The power over a node's wall clock: Skewable, by libfaketime (harness.machine.fake_clock)."""

from __future__ import annotations

import time
from functools import cached_property
from pathlib import Path

from harness.clusters.base.server import ASK_LIMIT_S
from harness.clusters.processes.server_process import ServerProcess
from harness.errors import FaultError
from harness.kafka.protocol import raw_client
from harness.kafka.topics import PROBE_TOPIC
from harness.machine.fake_clock import RIGHT, Clock, Skew, drop_shared_memory
from harness.waiting import wait_until

_LOAD_LIMIT_S = 30.0


class Clocked(ServerProcess):
    def wrapped(self, command: list[str | Path]) -> list[str | Path]:
        return super().wrapped(self._clock.under(command) if self.options.clocks else command)

    def launch(self) -> None:
        if self.options.clocks:
            self._clock.write()
        super().launch()
        if self.options.clocks:
            self._drop_shared_memory()

    def residue(self) -> list[str]:
        wrong = [f"the clock of {self.name} is set wrong"] if self._clock.skew != RIGHT else []
        return super().residue() + wrong

    def closed(self) -> None:
        super().closed()
        self.right_clock()

    # Skewable

    def skew_clock(self, offset_s: float, rate: float = 1.0) -> None:
        if not self.options.clocks:
            raise FaultError(
                f"the clock of {self.name} cannot be set: the cluster was started without clocks; start it with Options(clocks=True)"
            )
        self._clock.set(Skew(offset_s, rate, time.time()))

    def right_clock(self) -> None:
        self._clock.right()

    def clock_offset_s(self) -> float:
        """Ask the node for its time and return the offset. A controller reports its time only while it leads the quorum."""
        before = time.time()
        return self.reported_time_ms() / 1000 - (before + time.time()) / 2

    def reported_time_ms(self) -> int:
        if self.member.broker:
            place = self.member.id - 1
            return raw_client.append(self.control, PROBE_TOPIC, place, b"clock", timeout_s=10.0).time_ms
        return raw_client.quorum_leader_time_ms(self.controller, ASK_LIMIT_S)

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
