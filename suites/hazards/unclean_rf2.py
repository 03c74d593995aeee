"""Two replicas and unclean elections: the follower misses records, returns while the leader is down, and leads without them.

The broker that is killed first leads another partition. That the leadership of that one has moved shows that it is out of sync.
"""

from __future__ import annotations

from faults.kill import Kill
from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import Scenario
from harness.schedule import once, overlapping
from harness.targets import follower_of, leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

TOPIC = TopicSettings(replication_factor=2, min_insync_replicas=1)
UNSAFE = Scenario(
    name="control-unclean_rf2",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={
        "lost": 1,
        "offset_conflict": 1,
    },  # the new leader gives the offsets of the lost records to others
    tolerates=("rewound", "skipped", "undelivered"),  # by readers that had read beyond the new end
    control=True,
    hazard="unclean_rf2",
    topic=TopicSettings(
        replication_factor=2, min_insync_replicas=1, extra={"unclean.leader.election.enable": "true"}
    ),
    schedule=overlapping(
        once(Kill(), on=follower_of(0), after_s=0.5, hold_s=3.5),
        once(Kill(), on=leader_of(0), after_s=2.0, hold_s=8.0),  # the follower returns meanwhile
    ),
)
hazard = Hazard(
    title="Unclean elections let two records have one offset",
    kind=Kind.BROKER_DURABILITY,
    at_risk="topics with unclean.leader.election.enable=true, the default before Kafka 0.11",
    cure="Leave unclean.leader.election.enable at false, and use a replication factor of 3.",
    sources=("KIP-106", "KIP-966"),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, topic=TOPIC),
)
