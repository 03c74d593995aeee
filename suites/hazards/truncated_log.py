"""One replica, and a broker whose log has lost its end, as after a disk crash."""

from __future__ import annotations

from faults.truncate_log import TruncateLog
from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

UNSAFE = Scenario(
    name="control-truncated_log",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    # Other records get the offsets of the lost ones, and readers that had read those go back or miss records.
    tolerates=("offset_conflict", "rewound", "skipped", "undelivered"),
    control=True,
    hazard="truncated_log",
    topic=TopicSettings(replication_factor=1, min_insync_replicas=1),
    # More than can be on its way without an ack.
    schedule=once(TruncateLog(cut_bytes=1 << 20), on=leader_of(0), after_s=0.5, hold_s=1.0),
)
hazard = Hazard(
    title="The end of the only copy is gone after a disk crash",
    kind=Kind.BROKER_DURABILITY,
    at_risk="topics with a replication factor of 1, whatever acks the producer asks for",
    cure="Use a replication factor of 3: the broker fetches what it misses from the other copies.",
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, topic=TopicSettings()),
)
