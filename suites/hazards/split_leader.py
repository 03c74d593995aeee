"""A leader that is cut off from brokers and controllers goes on acknowledging with acks=1; a new leader has been elected meanwhile."""

from __future__ import annotations

from faults.sever import Sever
from harness.contracts import Mode, Verdict
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

UNSAFE = Scenario(
    name="control-split_leader",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    tolerates=("offset_conflict",),  # other records get the offsets of the lost ones
    control=True,
    hazard="split_leader",
    schedule=once(Sever(), on=leader_of(0), after_s=0.5, hold_s=4.0),
    producers=ProducerSettings(acks="1"),
)
hazard = Hazard(
    title="acks=1 and a leader that only its clients can still reach",
    kind=Kind.BROKER_DURABILITY,
    at_risk="every producer with acks=1: it sees no error and keeps sending to the old leader",
    cure="Use acks=all with min.insync.replicas=2 and a replication factor of 3.",
    sources=("KIP-679",),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, producers=ProducerSettings()),
)
