"""Every append of the leader takes 200 ms: producers wait for so long, and nothing is lost or written twice."""

from __future__ import annotations

from faults.slow_disk import SlowDisk
from harness.contracts import Mode
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import DISKS_AND_CLOCKS, Hazard, Kind

hazard = Hazard(
    title="A leader whose disk is slow",
    kind=Kind.FALSE_ALARMS,
    at_risk="producers whose delivery timeout is shorter than the delay; with acks=all a slow follower delays them too",
    cure="Nothing has to be done for delivery; set delivery.timeout.ms above the longest delay that a disk may have.",
    sources=("the documentation of ProducerConfig, delivery.timeout.ms",),
    needs=DISKS_AND_CLOCKS,
    safe=Scenario(
        name="safe-slow_append",
        mode=Mode.IDEMPOTENT,
        hazard="slow_append",
        schedule=once(SlowDisk(delay_ms=200), on=leader_of(0), after_s=0.5, hold_s=2.5),
    ),
)
