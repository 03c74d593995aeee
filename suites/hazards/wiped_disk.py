"""One replica, and a broker whose disk is replaced: it starts again without the records that only it had."""

from __future__ import annotations

from faults.wipe_disk import WipeDisk
from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

UNSAFE = Scenario(
    name="control-wiped_disk",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    # Other records get the offsets of the lost ones, and readers that had read those go back or miss records.
    tolerates=("offset_conflict", "rewound", "skipped", "undelivered"),
    control=True,
    hazard="wiped_disk",
    topic=TopicSettings(replication_factor=1, min_insync_replicas=1),
    schedule=once(WipeDisk(), on=leader_of(0), after_s=0.5, hold_s=1.0),
)
hazard = Hazard(
    title="The only disk with the records is replaced",
    kind=Kind.CLUSTER_STATES,
    at_risk="topics with a replication factor of 1, whatever acks the producer asks for",
    cure="Use a replication factor of 3; start a broker with an empty disk only when others lead its partitions.",
    sources=("KAFKA-14139", "KIP-903"),
    quick=True,
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, topic=TopicSettings()),
)
