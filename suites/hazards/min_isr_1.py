"""acks=all with min.insync.replicas=1: an ack may mean one copy. Its broker dies, and an operator has another replica elected.

The followers die one after the other, so that the second one has all that was acked by more than one broker. Only that one
returns before the election: with min.insync.replicas=2 nothing that was acked is missing in its log.
"""

from __future__ import annotations

from faults.elect_unclean import ElectUnclean
from faults.kill import Kill
from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import Scenario
from harness.schedule import Window, once, overlapping
from harness.targets import every_broker, follower_of, leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

_LAST = "back after the election"  # these windows end together, the last one first
UNSAFE = Scenario(
    name="control-min_isr_1",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    # Other records get the offsets of the lost ones, and readers that had read those go back or miss records.
    tolerates=("offset_conflict", "rewound", "skipped", "undelivered"),
    control=True,
    hazard="min_isr_1",
    topic=TopicSettings(min_insync_replicas=1),
    schedule=overlapping(
        (Window(Kill(), follower_of(0), 0.5, 1.0, _LAST),),
        once(Kill(), on=follower_of(0), after_s=2.0, hold_s=4.0),
        # For two seconds the leader alone acknowledges.
        (Window(Kill(), leader_of(0), 4.0, 1.0, _LAST),),
        # The second follower is back.
        (Window(ElectUnclean(), every_broker(), 7.0, 2.0, _LAST),),
    ),
)
hazard = Hazard(
    title="acks=all and min.insync.replicas=1: one broker acknowledges alone and dies",
    kind=Kind.BROKER_DURABILITY,
    at_risk="topics with min.insync.replicas=1, the default of Kafka, whatever acks the producer asks for",
    cure="Set min.insync.replicas=2 with a replication factor of 3.",
    sources=("KIP-966",),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, topic=TopicSettings(min_insync_replicas=2)),
)
