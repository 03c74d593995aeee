"""A write of the leader fails: the broker ends at once, another one leads its partitions, and no acknowledged record is lost."""

from __future__ import annotations

from faults.broken_disk import BrokenDisk
from harness.contracts import Mode
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import DISKS_AND_CLOCKS, Hazard, Kind

hazard = Hazard(
    title="A leader whose disk reports errors",
    kind=Kind.FALSE_ALARMS,
    at_risk="topics with a replication factor of 1, which cannot be written or read meanwhile",
    cure="Nothing has to be done for delivery with acks=all and a replication factor of 3; replace the disk and start the broker again.",
    sources=("KIP-112",),
    needs=DISKS_AND_CLOCKS,
    safe=Scenario(
        name="safe-append_io_error",
        mode=Mode.IDEMPOTENT,
        hazard="append_io_error",
        schedule=once(BrokenDisk(), on=leader_of(0), after_s=0.5, hold_s=1.5),
    ),
)
