"""A group that begins new partitions at their end never reads what was written before it noticed them.

The only member is stopped while a partition is added and written to, as members are that have not refreshed their metadata yet
(every five minutes by default). The fault bites only when the new partition has records.
"""

from __future__ import annotations

from faults.add_partitions import AddPartitions
from faults.pause_worker import PauseWorker
from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings, Scenario
from harness.schedule import together
from harness.targets import consumer, leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

WRITTEN = 200  # records of the new partition that the group must not know in time

UNSAFE = Scenario(
    name="control-latest_new_partition",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"undelivered": WRITTEN},
    tolerates=("overcommitted",),  # the group commits an offset behind the records that it has not read
    control=True,
    hazard="latest_new_partition",
    schedule=together(
        (PauseWorker(), consumer(1)),
        (AddPartitions(written=WRITTEN), leader_of(0)),
        after_s=0.5,
        hold_s=0.5,
    ),
    consumers=ConsumerSettings(members=1, reset="latest"),
)
hazard = Hazard(
    title="Partitions are added, and the group begins them at their end",
    kind=Kind.CONSUMERS,
    at_risk="groups with auto.offset.reset=latest, the default of Java clients and librdkafka",
    cure="Set auto.offset.reset=earliest in groups that have to read every record.",
    sources=("KAFKA-12478", "KIP-842"),
    quick=True,
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, consumers=ConsumerSettings(members=1, reset="earliest")),
)
