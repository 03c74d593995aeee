"""All brokers lose power at once: Kafka acknowledges before it writes to disk, so records that every replica had are gone."""

from __future__ import annotations

from faults.power_loss import PowerLoss
from harness.clusters.base.options import Options
from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import every_broker
from suites.scenarios.fault_cases import TRUNCATED
from suites.scenarios.hazards import Hazard, Kind, Needs, safe_way

# The fault measures that records are gone which were written, and not synced, on every broker.
UNSAFE = Scenario(
    name="control-power_loss_everywhere",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    tolerates=(*TRUNCATED, "overcommitted"),  # the committed offsets of the group are lost as well
    control=True,
    hazard="power_loss_everywhere",
    schedule=once(PowerLoss(), on=every_broker(), after_s=0.5, hold_s=1.0),
)
hazard = Hazard(
    title="All brokers lose power at once",
    kind=Kind.BROKER_DURABILITY,
    at_risk="clusters whose replicas share a power supply, a rack or a data centre, whatever the producers do",
    cure="Spread replicas over independent power supplies; where that is impossible, set flush.messages=1 for the topic.",
    sources=("the documentation of flush.messages",),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, topic=TopicSettings(extra={"flush.messages": "1"})),
    needs=Needs(options=Options(fuse=True)),
)
