"""Claims about batches and about the producer's buffer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Producer

from harness.claims.bench import Bench, NotApplicable
from harness.claims.claim import Claim, Curve, Measurements, Observation, Part, Truth
from harness.contracts import Lane, ReplicaLogs
from harness.kafka.batches import LogBatch, batches
from harness.processes import child_process
from harness.waiting import wait_until
from suites.claims._java import JavaProducer, java_producer
from suites.claims._runs import killed_nodes

VALUE = b"x" * 100
LINGERS_MS = (0, 10, 25, 50, 100)
ROUNDS = 3
BUFFER_BYTES, MAX_BLOCK_MS = 64_000, 2000  # of Java
MOST_SENT = 5000  # more than either buffer takes
FLUSH_LIMIT_S = 60.0


def log_of(bench: Bench, topic: str) -> list[LogBatch]:
    """Return the batches of partition 0, from the segments of a replica."""
    if not isinstance(bench.cluster, ReplicaLogs):
        raise NotApplicable("the log files of this cluster cannot be read from here")
    folder = next(iter(bench.cluster.replica_folders(topic, 0).values()))
    return [
        b for segment in sorted(folder.glob("*.log")) for b in batches(segment.read_bytes()) if not b.control
    ]


def usual_records(found: Sequence[LogBatch]) -> float:
    """Return the median number of records in a batch: a machine that stalls for a moment makes a few large ones."""
    return median(b.last - b.base + 1 for b in found) if found else 0.0


def by_size_or_time(bench: Bench) -> Measurements:
    settings: Mapping[str, Mapping[str, Any]] = {
        "small batches, long linger": {"batch_size": 1000, "linger_ms": 500},
        "large batches, no linger, a record every 20 ms": {"batch_size": 1_000_000, "linger_ms": 0},
        "large batches, linger 400 ms, a record every 20 ms": {"batch_size": 1_000_000, "linger_ms": 400},
    }
    usual = {}
    for name, given in settings.items():
        topic = bench.topic(partitions=1)
        producer = bench.producer(acks="all", **given)
        began = time.monotonic()
        for number in range(200):
            producer.produce(topic, value=VALUE)
            producer.poll(0)
            if "every 20 ms" in name:
                time.sleep(max(0.0, began + (number + 1) * 0.02 - time.monotonic()))
        producer.flush(30.0)
        usual[name] = usual_records(log_of(bench, topic))
    full, at_once, lingered = usual.values()
    return Measurements.of(
        Observation("a batch is sent when it is full, however long the linger", full <= 10, f"{full:g} records in a batch of 1,000 bytes"),
        Observation("or when the linger has passed", lingered > 3 * at_once,
                    f"{at_once:g} records in a batch without linger, {lingered:g} with 400 ms"),
    )  # fmt: skip


def full_buffer(bench: Bench) -> Measurements:
    """Send with both clients until their buffers are full; the broker is dead, so nothing leaves them."""
    topic = bench.topic(partitions=1, replication_factor=1, min_insync_replicas=1)
    bench.send(topic, [{"value": VALUE}])
    leader = bench.cluster.view().partitions(topic)[0].leader
    assert leader is not None
    ours = bench.producer(queue_buffering_max_messages=1000, linger_ms=0, enable_idempotence=True)
    ours.list_topics(topic, timeout=30.0)
    with java_producer(
        bench, buffer_memory=BUFFER_BYTES, max_block_ms=MAX_BLOCK_MS, batch_size=1000, compression_type="none",
        delivery_timeout_ms=300_000,
    ) as javas:  # fmt: skip
        javas.send_acked(topic, VALUE)  # it knows the partition before the broker dies
        with killed_nodes(bench, [leader]):
            blocked_ms, by_java = _until_it_blocks(javas, topic)
            refused, longest_ms, by_librdkafka = _until_it_raises(ours, topic)
        javas.flush()
        unsent = ours.flush(FLUSH_LIMIT_S)
    expected = 2 + by_java + by_librdkafka
    in_log = len(bench.read(topic, expected + 1, 10.0))
    return Measurements.of(
        Observation("with a Java client", blocked_ms is not None and blocked_ms >= MAX_BLOCK_MS,
                    f"after {by_java:,} records send waited {blocked_ms or 0:,.0f} ms (max.block.ms={MAX_BLOCK_MS:,}) and then gave up"),
        Observation("with librdkafka", not refused,
                    f"after {by_librdkafka:,} records: {refused or 'no error'}; the longest call took {longest_ms:.1f} ms", Part.OUTSIDE),
        Observation("when the broker is back, exactly the accepted records are sent: a refused one was never attempted",
                    in_log == expected and not unsent, f"{in_log:,} of {expected:,} accepted records in the log", Part.CONTROL),
    )  # fmt: skip


def _until_it_blocks(producer: JavaProducer, topic: str) -> tuple[float | None, int]:
    """Send until a record is refused: return how long that call took, and how many were accepted before."""
    for number in range(MOST_SENT):
        began = time.monotonic()
        future = producer.send(topic, VALUE)
        took_ms = (time.monotonic() - began) * 1000
        if future.isDone():  # nothing can be acked, so it has failed
            return took_ms, number
    return None, MOST_SENT


def _until_it_raises(producer: Producer, topic: str) -> tuple[str, float, int]:
    """Send until a call raises: return the error, the longest time that a call took, and how many records were accepted."""
    longest = 0.0
    for number in range(MOST_SENT):
        began = time.monotonic()
        try:
            producer.produce(topic, value=VALUE)
        except BufferError as error:
            return str(error), longest * 1000, number
        finally:
            longest = max(longest, time.monotonic() - began)
    return "", longest * 1000, MOST_SENT


def linger_curve(bench: Bench) -> Measurements:
    """Measure the latency of a record sent alone, and the records per request under load, at several lingers, in turns.

    The best of all rounds counts: other work on the machine makes records later and batches larger, never the opposite.
    """
    latency: dict[int, list[float]] = {ms: [] for ms in LINGERS_MS}
    filled: dict[int, list[float]] = {ms: [] for ms in LINGERS_MS}
    for _ in range(ROUNDS):
        for ms in LINGERS_MS:
            latency[ms].append(_alone_ms(bench, ms))
            filled[ms].append(_filled(bench, ms))
    by_latency = [(float(ms), round(min(values), 1)) for ms, values in latency.items()]
    by_filled = [(float(ms), min(values)) for ms, values in filled.items()]
    return Measurements.of(
        Observation("latency grows", by_latency[-1][1] > by_latency[0][1] + 50,
                    f"{by_latency[0][1]:.1f} ms without linger, {by_latency[-1][1]:.1f} ms with {LINGERS_MS[-1]} ms"),
        Observation("requests carry more, which is what throughput is made of", by_filled[-1][1] > 3 * by_filled[0][1],
                    f"{by_filled[0][1]:.1f} and {by_filled[-1][1]:.1f} records in a batch at 1,000 records/s"),
        curves=(Curve("linger.ms", "ms until a single record is acked, the fastest", tuple(by_latency)),
                Curve("linger.ms", "records in a batch, at 1,000 records/s", tuple(by_filled))),
    )  # fmt: skip


def _alone_ms(bench: Bench, linger_ms: int) -> float:
    topic = bench.topic(partitions=1)
    producer, times = bench.producer(acks="all", linger_ms=linger_ms), []
    for _ in range(6):  # the first one opens connections
        began = time.perf_counter()
        producer.produce(topic, value=VALUE)
        while len(producer):  # no flush: it ends the linger
            producer.poll(0.005)
        times.append((time.perf_counter() - began) * 1000)
    return min(times[1:])


def _filled(bench: Bench, linger_ms: int) -> float:
    topic = bench.topic(partitions=1)
    producer = bench.producer(acks="all", linger_ms=linger_ms)
    began = time.monotonic()
    for number in range(1000):
        producer.produce(topic, value=VALUE)
        producer.poll(0)
        time.sleep(max(0.0, began + number / 1000 - time.monotonic()))
    producer.flush(30.0)
    return usual_records(log_of(bench, topic))


def buffer_dies_with_the_process(bench: Bench) -> Measurements:
    """Kill a process that has filled its buffer and reported how much, before anything can leave it."""
    topic = bench.topic(partitions=1)
    # librdkafka refuses records whose linger is longer than they may live.
    settings = bench.settings(
        Lane.CONTROL, linger_ms=600_000, message_timeout_ms=900_000, batch_size=10_000_000
    )
    with TemporaryDirectory() as folder:
        log = Path(folder) / "buffered"
        process = child_process.spawn(
            [sys.executable, "-m", "suites.support.full_buffer", topic], log=log, stdin=subprocess.PIPE
        )
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(settings).encode())  # may contain a password, so not an argument
            process.stdin.close()
            wait_until(
                lambda: log.read_text().endswith("buffered\n"),
                60.0,
                lambda: f"it did not fill its buffer: {log.read_text()[-200:]}",
            )
            buffered = log.read_text().strip()
        finally:
            child_process.end(process)
    bench.send(topic, [{"value": b"after"}])
    read = bench.read(topic, 2, 10.0)
    return Measurements.of(
        Observation("the producer is killed with a full buffer", [r.value for r in read] == [b"after"],
                    f"{buffered}, {len(read) - 1} of them are in the log")
    )  # fmt: skip


claims = (
    Claim(
        id="BAT-1", statement="Records are sent in batches: when batch.size is full or linger.ms has passed.",
        expected=Truth.TRUE, setting="batch.size, linger.ms", case=by_size_or_time,
        why="Whatever comes first; without linger a batch is what gathers while the one before is sent.",
    ),
    Claim(
        id="BAT-2", statement="A full buffer blocks send.", expected=Truth.CONDITIONAL, quick=True,
        condition="the client is the Java client; librdkafka raises an error instead",
        setting="buffer.memory, max.block.ms (Java); queue.buffering.max.messages (librdkafka)", case=full_buffer,
        why="Java blocks for max.block.ms; librdkafka raises at once, and what the application drops then was never attempted.",
    ),
    Claim(
        id="BAT-3", statement="A larger linger buys throughput with latency.", expected=Truth.TRUE,
        setting="linger.ms", case=linger_curve, why="Records wait for company: fewer, fuller requests, each record later.",
    ),
    Claim(
        id="BAT-4", statement="What is in the buffer is gone when the process dies.", expected=Truth.TRUE,
        setting="flush() before exit", case=buffer_dies_with_the_process,
        why="The buffer is memory of the client. Nothing was acked, so nothing is lost: it was never sent.",
    ),
)  # fmt: skip
