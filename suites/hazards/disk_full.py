"""The disk of the leader is full: the broker ends, and other brokers lead its partitions."""

from __future__ import annotations

from faults.full_disk import FullDisk
from harness.contracts import Mode
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import DISKS_AND_CLOCKS, Hazard, Kind

hazard = Hazard(
    title="A full disk of the leader",
    kind=Kind.FALSE_ALARMS,
    at_risk="topics with a replication factor of 1, which cannot be written or read meanwhile",
    cure="Nothing has to be done for delivery with acks=all and a replication factor of 3; make room and start the broker again.",
    sources=("KIP-112",),
    needs=DISKS_AND_CLOCKS,
    safe=Scenario(
        name="safe-disk_full",
        mode=Mode.IDEMPOTENT,
        hazard="disk_full",
        schedule=once(FullDisk(), on=leader_of(0), after_s=0.5, hold_s=1.5),
    ),
)
