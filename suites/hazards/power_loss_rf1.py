"""One replica, and a broker that loses power: Kafka acknowledges before it fsyncs, so all that was not written out is lost."""

from __future__ import annotations

from faults.power_loss import PowerLoss
from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import DISKS_AND_CLOCKS, Hazard, Kind, safe_way

UNSAFE = Scenario(
    name="control-power_loss_rf1",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    # Other records get the offsets of the lost ones, and readers that had read those go back or miss records.
    tolerates=("offset_conflict", "rewound", "skipped", "undelivered"),
    control=True,
    hazard="power_loss_rf1",
    topic=TopicSettings(replication_factor=1, min_insync_replicas=1),
    schedule=once(PowerLoss(), on=leader_of(0), after_s=0.5, hold_s=1.0),
)
hazard = Hazard(
    title="The only broker with the records loses power before it has written them to disk",
    kind=Kind.BROKER_DURABILITY,
    at_risk="topics with a replication factor of 1, whatever acks the producer asks for",
    cure="Use a replication factor of 3 in separate failure domains; flush.messages=1 helps a single copy, at a price.",
    sources=("https://kafka.apache.org/documentation/#appvsosflush",),
    needs=DISKS_AND_CLOCKS,
    unsafe=UNSAFE,
    safe=safe_way(
        UNSAFE,
        topic=TopicSettings(replication_factor=1, min_insync_replicas=1, extra={"flush.messages": "1"}),
    ),
)
