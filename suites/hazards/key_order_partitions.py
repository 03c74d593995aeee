"""Partitions are added: a key moves to another one, and the group reads its later records before its earlier ones.

The only member is away while the old partition has a backlog and the new ones are written to. It then reads all of them in
small fetches: the first records of a new partition arrive long before the last ones of the backlog. A broker returns whole
batches, so only small batches make small fetches.
"""

from __future__ import annotations

from faults.add_partitions import AddPartitions
from faults.kill_worker import KillWorker
from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario
from harness.schedule import once, together
from harness.targets import consumer, leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

UNSAFE = Scenario(
    name="control-key_order_partitions",
    mode=Mode.IDEMPOTENT,
    expected=Verdict.VIOLATED,
    requires={"key_reordered": 100},
    # Kafka promises no order of a key if partitions are added; this application relies on it.
    forbids=("key_reordered",),
    control=True,
    hazard="key_order_partitions",
    schedule=together(
        (KillWorker(), consumer(1)),
        (AddPartitions(more=3, written=1000), leader_of(0)),
        after_s=0.5,
        hold_s=0.5,
    ),
    topic=TopicSettings(partitions=1),
    producers=ProducerSettings(keyless=0, batch_bytes=2048),
    consumers=ConsumerSettings(members=1, session_timeout_ms=6000, extra={"fetch.message.max.bytes": 2048}),
)
hazard = Hazard(
    title="Partitions are added under load, and the order of keys breaks",
    kind=Kind.PARTITIONERS,
    at_risk="applications that rely on the order of a key, whatever the client",
    cure="Create enough partitions at first; to add some later, stop the producers until the group has read everything.",
    sources=("https://kafka.apache.org/documentation/#basic_ops_modify_topic",),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, schedule=once(KillWorker(), on=consumer(1), after_s=0.5, hold_s=5.0)),
)
