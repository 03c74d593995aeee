"""acks=0 counts records as acked that only left the client; a leader that dies before it has read them loses them."""

from __future__ import annotations

from faults.kill import Kill
from harness.contracts import Mode, Verdict
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

# Its readers are correct: readers of at-most-once would lose records as well, by a rebalance, and that would be another anomaly.
UNSAFE = Scenario(
    name="control-acks0_loss",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    control=True,
    hazard="acks0_loss",
    schedule=once(Kill(unread=1000), on=leader_of(0), after_s=0.5, hold_s=1.0),
    producers=ProducerSettings(records_per_s=3000, acks="0", retries=0),
)
hazard = Hazard(
    title="acks=0 and a leader that dies",
    kind=Kind.BROKER_DURABILITY,
    at_risk="every producer with acks=0, whatever the client",
    cure="Use acks=all, the default since Kafka 3.0.",
    sources=("KIP-679",),
    place_in_prove=1,
    unsafe=UNSAFE,
    # Its producers wait for acks, so none of them sees a record acked that the paused leader has not read.
    safe=safe_way(
        UNSAFE,
        schedule=once(Kill(), on=leader_of(0), after_s=0.5, hold_s=1.0),
        producers=ProducerSettings(records_per_s=3000),
    ),
)
