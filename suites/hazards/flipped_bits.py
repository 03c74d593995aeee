"""One replica, and a byte on the disk that changes: after a crash Kafka cuts the log at the damaged batch, and all after it is lost."""

from __future__ import annotations

from faults.flip_bits import FlipBits
from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

UNSAFE = Scenario(
    name="control-flipped_bits",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    # Other records get the offsets of the lost ones, and readers that had read those go back or miss records.
    tolerates=("offset_conflict", "rewound", "skipped", "undelivered"),
    control=True,
    hazard="flipped_bits",
    topic=TopicSettings(replication_factor=1, min_insync_replicas=1),
    schedule=once(FlipBits(), on=leader_of(0), after_s=0.5, hold_s=1.0),
)
hazard = Hazard(
    title="One damaged byte in the only copy costs everything after it",
    kind=Kind.BROKER_DURABILITY,
    at_risk="topics with a replication factor of 1: Kafka checks the newest segment when it starts after a crash",
    cure="Use a replication factor of 3: the broker fetches what it has cut off from the other copies.",
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, topic=TopicSettings()),
)
