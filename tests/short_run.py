"""A run on mock brokers that is over in a second: one producer, one member, no faults."""

from __future__ import annotations

from harness.clusters.memory import PARTITIONS
from harness.contracts import Mode, TopicSettings
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario, Timings

HONEST = Scenario(
    name="honest",
    mode=Mode.IDEMPOTENT,
    topic=TopicSettings(partitions=PARTITIONS),
    producers=ProducerSettings(records_per_s=1000),
    consumers=ConsumerSettings(members=1),
    timings=Timings(warm_up_s=0.1, cool_down_s=0.1, drain_limit_s=20),
    produce_s=0.3,
)
