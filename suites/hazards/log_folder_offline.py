"""One of several log folders of the leader fails: the broker goes on without it, and other brokers lead its partitions."""

from __future__ import annotations

from faults.broken_disk import BrokenDisk
from harness.contracts import Mode
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import DISKS_AND_CLOCKS, Hazard, Kind

hazard = Hazard(
    title="A log folder that goes offline",
    kind=Kind.FALSE_ALARMS,
    at_risk="topics with a replication factor of 1, which cannot be written or read meanwhile",
    cure="Nothing has to be done for delivery with acks=all and a replication factor of 3; replace the disk and start the broker again.",
    sources=("KIP-112",),
    needs=DISKS_AND_CLOCKS,
    safe=Scenario(
        name="safe-log_folder_offline",
        mode=Mode.IDEMPOTENT,
        hazard="log_folder_offline",
        schedule=once(BrokenDisk(folder=2), on=leader_of(0), after_s=0.5, hold_s=1.5),
    ),
)
