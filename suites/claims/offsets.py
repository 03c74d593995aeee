"""Claims about offsets, and about what reading does to a log."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from confluent_kafka import TopicPartition

from faults.kill import Kill
from faults.kill_worker import KillWorker
from harness.claims.bench import Bench
from harness.claims.claim import Claim, Measurements, Observation, Truth
from harness.contracts import Mode
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import consumer, group_coordinator
from suites.claims._runs import shown_by

RECORDS = 500
FAR = 2**62 + 1  # no 32-bit number and no double has this value
# Transactions with aborted ones among them: their markers are gaps between the offsets of records.
WITH_GAPS = Scenario(
    name="claim-off-gaps",
    mode=Mode.EXACTLY_ONCE,
    producers=ProducerSettings(records_per_transaction=20, aborted_share=0.3),
    produce_s=2.0,
)
RESTARTED = Scenario(
    name="claim-off-consumer_restart",
    mode=Mode.AT_LEAST_ONCE,
    consumers=ConsumerSettings(members=1, session_timeout_ms=6000),
    schedule=once(KillWorker(), on=consumer(1), after_s=0.5, hold_s=1.0),
)
COORDINATOR_KILLED = replace(
    RESTARTED,
    name="claim-off-coordinator_killed",
    schedule=once(Kill(), on=group_coordinator(), after_s=0.5, hold_s=1.0),
)


def values(count: int) -> list[dict[str, object]]:
    return [{"value": b"%d" % number} for number in range(count)]


def unique_and_growing(bench: Bench) -> Measurements:
    topic = bench.topic(partitions=3)
    bench.send(topic, [{"value": b"%d" % n, "partition": n % 3} for n in range(RECORDS * 3)])
    read = bench.read(topic, RECORDS * 3)
    each = [[r.offset for r in read if r.partition == number] for number in range(3)]
    grow = all(a < b for offsets in each for a, b in pairwise(offsets))
    shared = len({r.offset for r in read}) < len(read)
    return Measurements.of(
        Observation("within a partition", grow and all(each), f"{len(read):,} records, offsets grow in each partition"),
        Observation("across partitions offsets repeat", shared, f"{len({r.offset for r in read}):,} different offsets"),
        _beyond_32_bits(bench, topic),
        bench.observed(WITH_GAPS, "with transactions, whose markers leave gaps; no position has two records"),
    )  # fmt: skip


def _beyond_32_bits(bench: Bench, topic: str) -> Observation:
    """Commit an offset that needs more than 32 bits and read it back. A log of that length cannot be made here."""
    with bench.consumer() as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, FAR)], asynchronous=False)
        (back,) = consumer.committed([TopicPartition(topic, 0)], timeout=30.0)
    return Observation("as 64-bit numbers", back.offset == FAR, f"committed {FAR}, read back {back.offset}")


def kept_by_the_brokers(bench: Bench) -> Measurements:
    return Measurements.of(
        bench.observed(RESTARTED, "the only consumer is killed and starts again"),
        bench.observed(COORDINATOR_KILLED, "the broker that coordinates the group is killed"),
        _continues(bench),
    )


def _continues(bench: Bench) -> Observation:
    """Check that a new member of the group begins where the previous one committed."""
    topic, group = bench.topic(partitions=1), bench.name("group")
    bench.send(topic, values(RECORDS))
    half = RECORDS // 2
    with bench.consumer(group_id=group) as first:
        first.subscribe([topic])
        read = bench.take(first, half)
        if len(read) < half:
            return Observation(
                "a new consumer of the group", None, f"the first one got {len(read)} of {half} records"
            )
        first.commit(offsets=[TopicPartition(topic, 0, half)], asynchronous=False)
    with bench.consumer(group_id=group) as second:
        second.subscribe([topic])
        rest = bench.take(second, RECORDS - half)
    evidence = f"committed {half}; the next consumer began at offset {rest[0].offset if rest else 'none'}"
    return Observation("a new consumer of the group", bool(rest) and rest[0].offset == half, evidence)


def reading_removes_nothing(bench: Bench) -> Measurements:
    topic = bench.topic(partitions=1)
    bench.send(topic, values(RECORDS))
    groups = [[r.offset for r in bench.read(topic, RECORDS)] for _ in range(3)]
    with bench.consumer() as consumer:
        consumer.subscribe([topic])
        bench.take(consumer, RECORDS)
        consumer.seek(TopicPartition(topic, 0, 0))
        again = bench.take(consumer, RECORDS)
    return Measurements.of(
        Observation("three groups, one after the other", groups[0] == groups[1] == groups[2] == list(range(RECORDS)),
                    f"each read {[len(g) for g in groups]} of {RECORDS} records"),
        Observation("a reader that seeks to the start", [r.offset for r in again] == list(range(RECORDS)),
                    f"{len(again)} of {RECORDS} records a second time"),
    )  # fmt: skip


claims = (
    Claim(
        id="OFF-1", statement="Offsets are unique and grow monotonically within a partition, as 64-bit numbers.",
        expected=Truth.TRUE, setting="no setting", case=unique_and_growing,
        why="They are unique in the partition, not in the topic, and gaps are legal: transactions leave markers.",
    ),
    Claim(
        id="OFF-2", statement="The brokers keep a group's offset, and a restarted consumer goes on from there.",
        expected=Truth.TRUE, setting="offsets.topic.replication.factor", case=kept_by_the_brokers,
        why="Offsets are records in __consumer_offsets, which is replicated like any topic.",
    ),
    Claim(
        id="OFF-3", statement="Reading removes nothing: groups read the same messages independently, and a reader can read again.",
        expected=Truth.TRUE, setting="retention.ms, retention.bytes", case=reading_removes_nothing, quick=True,
        why="A reader only has a position; retention alone removes records.",
    ),
    Claim(
        id="OFF-4", statement="With auto.offset.reset=latest, what is written to a new partition before the group sees it is never delivered.",
        expected=Truth.TRUE, setting="auto.offset.reset", case=shown_by("latest_new_partition", "auto.offset.reset=latest", "auto.offset.reset=earliest"),
        why="The group has no offset for the new partition and begins at its end. The records are in the log, not lost.",
    ),
)  # fmt: skip
