"""The power over a broker's disk: DiskBreakable."""

from __future__ import annotations

import time

from harness import wire
from harness.clusters import _byteman
from harness.clusters._mesh import Port
from harness.clusters._server import Server
from harness.contracts import DiskFault, DiskHarm

PROBE_TOPIC = "onceproof-probe"


class Disked(Server):
    def break_disk(self, how: DiskFault) -> str:
        _byteman.load(self._byteman, _byteman.rule(how, also=PROBE_TOPIC))
        return "byteman"

    def mend_disk(self) -> None:
        if self.running():  # rules die with the JVM
            _byteman.unload_all(self._byteman)

    def disk_latency_ms(self, harm: DiskHarm) -> float:
        """How long one append takes; a round trip to this broker's own partition of the probe topic."""
        return self.produce_round_trip_ms()

    def produce_round_trip_ms(self) -> float:
        """How long this broker takes to acknowledge one small record of its own probe partition."""
        begun = time.monotonic()
        wire.produce(self.control, PROBE_TOPIC, self.member.id - 1, b"probe", timeout_s=10.0)
        return (time.monotonic() - begun) * 1000

    @property
    def control(self) -> wire.Address:
        return (self.address, Port.CONTROL)

    @property
    def _byteman(self) -> tuple[str, int]:
        return (self.address, Port.BYTEMAN)
