"""Two producers hash the same keys in different ways, so a key is in two partitions, and no order is left between them."""

from __future__ import annotations

from harness.contracts import Mode, ProducerOptions, Verdict
from harness.scenario import ProducerSettings, Scenario
from suites.scenarios.hazards import Hazard, Kind, safe_way

SAME = ProducerSettings(keyed=2, keyless=0, keys=64, partitioner="murmur2")

UNSAFE = Scenario(
    name="control-partitioner_mismatch",
    mode=Mode.IDEMPOTENT,
    expected=Verdict.VIOLATED,
    requires={
        "misplaced": 20
    },  # of 64 keys; two hashes agree on about a third of them, with three partitions
    control=True,
    hazard="partitioner_mismatch",
    producers=ProducerSettings(
        keyed=2,
        keyless=0,
        keys=64,
        each=(ProducerOptions(partitioner="murmur2"), ProducerOptions(partitioner="crc32")),
    ),
)
hazard = Hazard(
    title="Producers with different partitioners write the same keys",
    kind=Kind.PARTITIONERS,
    at_risk="topics that Java clients (murmur2) and librdkafka with its default partitioner (CRC32) write together",
    cure="Set the same partitioner in all producers: partitioner=murmur2_random in librdkafka is that of Java clients.",
    sources=("KIP-480", "librdkafka#4510"),
    quick=True,
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, producers=SAME),
)
