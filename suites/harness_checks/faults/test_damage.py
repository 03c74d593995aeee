"""Damage to log files of real brokers: it is noticed, it heals, and no record is lost while one copy is intact."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from faults._damage import logs_of
from faults.flip_bits import FlipBits
from faults.kill import killable
from faults.truncate_log import TruncateLog
from harness.clients.confluent import Confluent
from harness.clusters.local import LocalCluster
from harness.clusters.powers.local_nodes import LocalBroker
from harness.contracts import Batch, ConsumerSpec, Fault, Lane, Mode, Node, TopicSettings
from harness.errors import ClusterError
from harness.targets import Target, follower_of, leader_of
from harness.testing.check_fault import check_fault
from harness.waiting import in_parallel, wait_until
from suites.support.arena import BareArena

pytestmark = pytest.mark.conformance
PARTITIONS = 2
RECORDS = 4000
# Small segments, so that there are several; frequent recovery checkpoints, so that Kafka does not scan the whole log after
# a kill.
SEGMENTS = {"segment.bytes": 1024 * 1024}
SETTINGS = {"log.flush.offset.checkpoint.interval.ms": "500"}

Content = Mapping[tuple[int, int], bytes]  # by partition and offset


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with LocalCluster(folder, controllers=1, broker_settings=SETTINGS) as cluster:
        yield cluster


def filled(cluster: LocalCluster, topic: str, partitions: int, extra: Mapping[str, object]) -> Content:
    cluster.create_topic(topic, TopicSettings(partitions=partitions, extra=extra))
    acked: dict[tuple[int, int], bytes] = {}

    def on_delivery(error: KafkaError | None, message: object) -> None:
        assert error is None, error
        acked[message.partition(), message.offset()] = message.value()  # type: ignore[attr-defined]

    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers(Lane.CONTROL), "acks": "all", "log_level": 0}
    )
    for number in range(RECORDS):
        producer.produce(topic, os.urandom(1000), partition=number % partitions, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(60) == 0
    return acked


def read_all(cluster: LocalCluster, topic: str, content: Content, *, check_crcs: bool) -> Content:
    """Return the records that a new reader gets, up to the end of the content; raises KafkaException for refused records."""
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers(Lane.CONTROL),
        "group.id": "reader",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "check.crcs": check_crcs,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    read: dict[tuple[int, int], bytes] = {}

    def whole() -> bool:
        for message in consumer.consume(500, timeout=0.5):
            if (error := message.error()) is not None:
                raise KafkaException(error)
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            read[partition, offset] = value
        return len(read) >= len(content)

    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in {p for p, _ in content}])
        wait_until(whole, 60.0, lambda: f"read {len(read)} of {len(content)}", every_s=0.0)
    finally:
        consumer.close()
    return read


def as_final_reader(cluster: LocalCluster, topic: str, records: int) -> Batch:
    """Return the records of partition 0 that the final reader's client gets."""
    spec = ConsumerSpec(
        bootstrap=cluster.bootstrap_servers(Lane.CONTROL), topic=topic, run=1, mode=Mode.IDEMPOTENT,
        isolation="read_uncommitted", assign={0: 0}, check_crcs=True,
    )  # fmt: skip
    consumer = Confluent().open_consumer(spec, lambda how, partitions: None)
    parts: list[Batch] = []

    def whole() -> bool:
        parts.append(consumer.poll(0.5))
        return sum(len(part.rows) for part in parts) >= records

    try:
        wait_until(
            whole, 60.0, lambda: f"read {sum(len(part.rows) for part in parts)} of {records}", every_s=0.0
        )
    finally:
        consumer.close()
    return replace(
        parts[-1],
        rows=np.concatenate([part.rows for part in parts]),
        errors=[e for part in parts for e in part.errors],
    )


@pytest.fixture(scope="module")
def content(cluster: LocalCluster) -> Content:
    return filled(cluster, "orders", PARTITIONS, SEGMENTS)


CASES: list[tuple[Fault, Target]] = [
    (TruncateLog(), follower_of()),
    (TruncateLog(), leader_of()),
    (TruncateLog(10**9), leader_of()),
    (FlipBits(), follower_of()),
    (FlipBits(), leader_of()),
    (FlipBits("oldest"), leader_of()),
]


@pytest.mark.parametrize(
    ("fault", "target"),
    CASES,
    ids=[f"{fault}-{target}-{n}" for n, (fault, target) in enumerate(CASES)],
)
def test_bites_heals_and_loses_nothing(
    cluster: LocalCluster,
    content: Content,
    fault: Fault,
    target: Target,
    record_property: Callable[[str, object], None],
) -> None:
    arena = BareArena(cluster)
    checked = check_fault(fault, arena, target.pick(arena))
    record_property("bite", checked.bite.proof)
    record_property("healing", checked.healing.proof)
    print(f"\n{fault} {target}: {checked.bite.proof} | {checked.healing.proof}")
    assert read_all(cluster, "orders", content, check_crcs=True) == content
    assert all(log.end() == RECORDS // PARTITIONS for log in logs_of(arena, all_brokers(cluster)))


def test_all_copies_cut_lose_records(cluster: LocalCluster) -> None:
    """If all copies are truncated no broker has the records any more; so the default is one broker."""
    acked = filled(cluster, "cut", 1, {})
    arena = BareArena(cluster, "cut")
    fault = TruncateLog(1)
    nodes = [node for node in cluster.nodes() if isinstance(node, LocalBroker)]
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
    healing = fault.healed(arena, nodes)
    assert healing.healed, healing.proof
    ends = {log.end() for log in logs_of(arena, all_brokers(cluster))}
    assert len(ends) == 1
    assert ends.pop() < len(acked)


def test_a_flipped_byte_in_flushed_data_stays_and_reaches_consumers(cluster: LocalCluster) -> None:
    """Kafka does not check flushed data again. A leader serves it; a consumer that compares checksums refuses it, one that
    does not (the default of librdkafka) gets a wrong value.
    """
    acked = filled(cluster, "rotten", 1, SEGMENTS)
    arena = BareArena(cluster, "rotten")
    fault, nodes = FlipBits("oldest"), follower_of().pick(arena)
    wait_until(lambda: _recovery_point(nodes[0], "rotten") > 1100, 60.0, "nothing was flushed")
    others = killable([node for node in cluster.nodes()
                       if isinstance(node, LocalBroker) and node.name != nodes[0].name])  # fmt: skip
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert bite.measured == {"bad_batches": 1, "bad_after_start": 1}
        wait_until(lambda: _in_sync(cluster, "rotten", 3), 60.0, "not in sync")
        assert read_all(cluster, "rotten", acked, check_crcs=True) == acked, (
            "a follower's byte affects no reader"
        )
        try:
            in_parallel(lambda node: node.kill(), others)
            wait_until(lambda: _leader(cluster, "rotten") == nodes[0].name, 60.0, "it does not lead")
            got = read_all(cluster, "rotten", acked, check_crcs=False)
            assert sum(got[at] != acked[at] for at in acked) == 1
            with pytest.raises(KafkaException, match=r"(?i)crc|bad message"):
                read_all(cluster, "rotten", acked, check_crcs=True)
            # TRUST T9: the final reader reports a record that the library refuses as damaged, never as missing.
            batch = as_final_reader(cluster, "rotten", len(acked))
            assert batch.rows["offset"].tolist() == [offset for _, offset in sorted(acked)]
            assert any("BAD_MSG" in error for error in batch.errors), batch.errors
        finally:
            in_parallel(lambda node: node.restart(), others)
    healing = fault.healed(arena, nodes)
    assert healing.healed, healing.proof
    assert read_all(cluster, "rotten", acked, check_crcs=True) == acked


def all_brokers(cluster: LocalCluster) -> list[str]:
    return [node.name for node in cluster.nodes()]


def _leader(cluster: LocalCluster, topic: str) -> str | None:
    try:
        return cluster.view().partitions(topic)[0].leader
    except ClusterError:
        return None


def _in_sync(cluster: LocalCluster, topic: str, count: int) -> bool:
    return len(cluster.view().partitions(topic)[0].in_sync) == count


def _recovery_point(node: Node, topic: str) -> int:
    """Return the offset up to which the broker considers the log flushed."""
    assert isinstance(node, LocalBroker)
    file = node.folder / "data" / "recovery-point-offset-checkpoint"
    lines = [line.split() for line in file.read_text(encoding="ascii").splitlines()] if file.is_file() else []
    return next((int(words[2]) for words in lines if words[:2] == [topic, "0"]), 0)
