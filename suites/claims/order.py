"""Claims about order and about the partitions of keys."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from harness.claims.bench import Bench, ReadRecord
from harness.claims.claim import Claim, Measurements, Observation, Part, Truth
from harness.kafka.admin import Administrator
from harness.provision.kafka import KAFKA_VERSION
from suites.claims._java import BEFORE_STICKY, java_producer
from suites.claims._runs import shown_by

RECORDS = 600
KEYLESS = 300
KEYS = [f"key-{number}".encode() for number in range(40)]


def numbered(count: int, partitions: int) -> list[dict[str, object]]:
    """Return records with consecutive numbers, each for the next partition in turn."""
    return [{"value": b"%d" % number, "partition": number % partitions} for number in range(count)]


def keyed(count: int) -> list[dict[str, object]]:
    return [{"key": KEYS[number % len(KEYS)], "value": b"%d" % number} for number in range(count)]


def in_order(records: Sequence[ReadRecord]) -> bool:
    numbers = [int(record.value or b"-1") for record in records]
    return numbers == sorted(numbers)


def within_a_partition(bench: Bench) -> Measurements:
    topic = bench.topic(partitions=3)
    bench.send(topic, numbered(RECORDS, 3), enable_idempotence=True)
    read = bench.read(topic, RECORDS)
    each = [[r for r in read if r.partition == number] for number in range(3)]
    whole = f"{len(read)} of {RECORDS} records read from 3 partitions"
    return Measurements.of(
        Observation("within each partition, records arrive in the order of sending",
                    all(each) and all(map(in_order, each)), whole),
        Observation("across the topic they do not", not in_order(read), f"{whole}, {_turns(read)} changes of partition"),
    )  # fmt: skip


def _turns(records: Sequence[ReadRecord]) -> int:
    return sum(1 for _ in groupby(records, key=lambda record: record.partition)) - 1


def keys_in_one_partition(bench: Bench) -> Measurements:
    topic = bench.topic(partitions=3)
    before = bench.send(topic, keyed(RECORDS), partitioner="murmur2_random", enable_idempotence=True)
    read = bench.read(topic, RECORDS)
    ordered = [in_order([record for record in read if record.key == key]) for key in KEYS]
    together = [len(places) == 1 for places in _places(before).values()]
    Administrator(bench.cluster, topic).grow(8)
    after = bench.send(topic, keyed(RECORDS), partitioner="murmur2_random", enable_idempotence=True)
    split = [len(places) > 1 for places in _places([*before, *after]).values()]
    evidence = f"{RECORDS} records: {sum(together)} of {len(KEYS)} keys are in one partition, {sum(ordered)} are read in order"
    return Measurements.of(
        Observation("the number of partitions is unchanged",
                    all(together) and all(ordered) if len(read) == RECORDS else None, evidence),
        Observation("partitions are added", not any(split),
                    f"3 to 8 partitions: {sum(split)} of {len(KEYS)} keys are in two partitions", Part.OUTSIDE),
    )  # fmt: skip


def _places(records: Sequence[ReadRecord]) -> dict[bytes, set[int]]:
    """Return the partitions in which each key is."""
    found: dict[bytes, set[int]] = {}
    for record in records:
        found.setdefault(record.key or b"", set()).add(record.partition)
    return found


def keyless_round_robin(bench: Bench) -> Measurements:
    """Records without a key: round robin changes the partition with every record."""
    return Measurements.of(
        _spread(_sent_by_java(bench, BEFORE_STICKY), f"with the Java client {BEFORE_STICKY}"),
        _spread(_sent_by_java(bench, KAFKA_VERSION), f"with the Java client {KAFKA_VERSION}", Part.OUTSIDE),
        _spread(_sent_by_librdkafka(bench), "with librdkafka", Part.OUTSIDE),
        _even(
            _sent_by_java(bench, KAFKA_VERSION, b"%0900d", partitioner_adaptive_partitioning_enable="false")
        ),
    )


def _sent_by_java(bench: Bench, version: str, form: bytes = b"%d", **more: str) -> list[ReadRecord]:
    """Send records without a key in batches of about 1,000 bytes, and return them in the order of sending."""
    topic = bench.topic(partitions=3)
    with java_producer(bench, version, acks="all", batch_size=1000, **more) as producer:
        for number in range(KEYLESS):
            producer.send(topic, form % number)
        producer.flush()
    return _in_order_of_sending(bench, topic)


def _sent_by_librdkafka(bench: Bench) -> list[ReadRecord]:
    topic = bench.topic(partitions=3)
    producer = bench.producer(acks="all", sticky_partitioning_linger_ms=10)
    for number in range(KEYLESS):
        producer.produce(topic, value=b"%d" % number)
        producer.poll(0)
        time.sleep(0.0005)  # over several batches
    producer.flush(30.0)
    return _in_order_of_sending(bench, topic)


def _in_order_of_sending(bench: Bench, topic: str) -> list[ReadRecord]:
    return sorted(bench.read(topic, KEYLESS), key=lambda record: int(record.value or b"0"))


def _spread(records: Sequence[ReadRecord], situation: str, part: Part = Part.STATED) -> Observation:
    turns = _turns(records)
    return Observation(
        situation, turns > KEYLESS / 2 if len(records) == KEYLESS else None, _said(records), part
    )


def _even(records: Sequence[ReadRecord]) -> Observation:
    shares = _shares(records)
    even = len(records) == KEYLESS and len(shares) == 3 and max(shares) < 2 * min(shares)
    return Observation(
        f"over {KEYLESS} batches of one record the shares are even", even, _said(records), Part.CONTROL
    )


def _said(records: Sequence[ReadRecord]) -> str:
    return f"{len(records)} of {KEYLESS} records read, {_turns(records)} changes of partition, {_shares(records)} in the partitions"


def _shares(records: Sequence[ReadRecord]) -> list[int]:
    counted = Counter(record.partition for record in records)
    return [counted[partition] for partition in sorted(counted)]


def clients_place_keys_alike(bench: Bench) -> Measurements:
    """The default hash of librdkafka beside the one of Java, for the same keys."""
    topic = bench.topic(partitions=8)
    with java_producer(bench, acks="all") as producer:
        for key in KEYS:
            producer.send(topic, b"java", key)
        producer.flush()
    java = _places(bench.read(topic, len(KEYS)))
    default = _places(bench.send(topic, keyed(len(KEYS))))
    alike = _places(bench.send(topic, keyed(len(KEYS)), partitioner="murmur2_random"))
    differ, equal = (sum(places[key] != java[key] for key in KEYS) for places in (default, alike))
    return Measurements.of(
        Observation("librdkafka's default beside Java's", differ > 0, f"{differ} of {len(KEYS)} keys are in different partitions"),
        Observation("librdkafka with murmur2_random beside Java's default", equal == 0,
                    f"{equal} of {len(KEYS)} keys are in different partitions", Part.CONTROL),
    )  # fmt: skip


claims = (
    Claim(
        id="ORD-1", statement="Order holds within a partition, not across a topic.", expected=Truth.TRUE, quick=True,
        why="A partition is one log; a reader of several partitions gets their records batch by batch.",
        setting="number of partitions", case=within_a_partition,
    ),
    Claim(
        id="ORD-2", statement="Equal keys go to one partition, hence stay in order.", expected=Truth.CONDITIONAL,
        condition="the number of partitions is unchanged",
        why="The partition is the hash of the key modulo the number of partitions.",
        setting="number of partitions, partitioner", case=keys_in_one_partition,
    ),
    Claim(
        id="ORD-3", statement="Adding partitions breaks the order of keys.", expected=Truth.TRUE,
        why="New records of a key go to another partition, which may be read before the old one.",
        setting="number of partitions", case=shown_by("key_order_partitions", "partitions are added under load", "without adding partitions"),
    ),
    Claim(
        id="ORD-4", statement="Several requests in flight can swap the order on retry.", expected=Truth.TRUE,
        why="A later batch is written while an earlier one is retried. Sequence numbers of an idempotent producer prevent it.",
        setting="enable.idempotence, max.in.flight.requests.per.connection", case=shown_by("retry_reorder", "several requests in flight, no idempotence, one batch fails", "the same with idempotence"),
    ),
    Claim(
        id="ORD-5", statement="Records without a key are spread round robin.", expected=Truth.CONDITIONAL,
        condition="the client is a Java client before 2.4",
        why="Current clients fill a batch for one partition before they choose the next; only the long run is even.",
        setting="batch.size, partitioner.class (Java); sticky.partitioning.linger.ms (librdkafka)", case=keyless_round_robin,
    ),
    Claim(
        id="ORD-6", statement="Two clients may place one key differently.", expected=Truth.TRUE, quick=True,
        why="librdkafka hashes keys with CRC32 by default, Java clients with murmur2.",
        setting="partitioner=murmur2_random", case=clients_place_keys_alike,
    ),
)  # fmt: skip
