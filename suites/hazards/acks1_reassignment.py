"""acks=1 while no follower can fetch from the leader; then an operator moves the leader's replica away, and the records with it."""

from __future__ import annotations

from faults.reassign import Reassign
from faults.sever import Sever
from harness.contracts import Mode, Verdict
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once, overlapping
from harness.targets import leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

UNSAFE = Scenario(
    name="control-acks1_reassignment",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    tolerates=("offset_conflict",),  # other records get the offsets of the lost ones
    control=True,
    hazard="acks1_reassignment",
    schedule=overlapping(
        once(Sever(shape="replication"), on=leader_of(0), after_s=0.5, hold_s=4.0),
        once(Reassign(), on=leader_of(0), after_s=3.0, hold_s=1.5),
    ),
    producers=ProducerSettings(acks="1"),
)
hazard = Hazard(
    title="acks=1 and a reassignment of the leader while the followers are behind",
    kind=Kind.PLANNED_MOVES,
    at_risk="every producer with acks=1 on a cluster whose partitions are moved",
    cure="Use acks=all with min.insync.replicas=2 and a replication factor of 3.",
    sources=("KAFKA-20554",),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, producers=ProducerSettings()),
)
