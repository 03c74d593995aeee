"""The cost of recording in an exactly-once pipeline: the same loop with and without the ledger, taking turns in one run.

Consume, make one record of each, send the offsets, commit: transactions of the same sizes on the same input. Goal: at least
60 % of the records per second of the loop without the ledger. Only the ratio counts, from the medians of several rounds.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from harness.clients.confluent import Confluent, ConfluentProducer
from harness.clients.librdkafka.translation import consumer_settings, producer_settings
from harness.clusters.local import LocalCluster
from harness.contracts import ConsumerSpec, Lane, Mode, ProducerSpec, SenderSpec, TopicSettings
from harness.ledger.journal import Ledger
from harness.ledger.transform import Transform, dead_letters_of, output_of
from harness.scenario import Pipeline
from harness.workers.counters import Board
from harness.workers.producer_session import Session
from harness.workers.roles.copier import CopierRole, CopierRoleSpec

TOPIC, RUN, PARTITIONS, PAYLOAD = "onceproof-bench", 7, 3, 128
GOAL = 0.60


def fill(cluster: LocalCluster, folder: Path, records: int) -> None:
    spec = SenderSpec(
        name="producer-1", number=1, run=RUN, topic=TOPIC, mode=Mode.IDEMPOTENT, lane=Lane.PRODUCE, keyed=False,
        partitions=PARTITIONS, payload_bytes=PAYLOAD, seed=1,
    )  # fmt: skip
    with Ledger(folder, "producer-1") as ledger:
        session = Session(spec, ledger, Board(folder / "fill.board"), 0)
        producer = ConfluentProducer(
            ProducerSpec(cluster.bootstrap_servers(Lane.PRODUCE), TOPIC, Mode.IDEMPOTENT)
        )
        for _ in range(records // 100):
            session.send(producer, session.next_messages(100))
            producer.poll(0)
        assert producer.flush(120) == 0


def recorded(cluster: LocalCluster, folder: Path, records: int, at_most: int, number: int) -> float:
    """Run the worker's own code, with everything that it records."""
    bootstrap = cluster.bootstrap_servers(Lane.CONSUME)
    spec = CopierRoleSpec(
        name=f"copier-{number}", number=number + 1, run=RUN, topic=TOPIC, lane=Lane.CONSUME,
        more_topics=(output_of(TOPIC), dead_letters_of(TOPIC)), group=f"recorded-{number}", mode=Mode.EXACTLY_ONCE,
        kind=Pipeline.OFFSETS_IN_TRANSACTION, isolation="read_committed", transform=Transform(1, 1.0),
        inputs_per_transaction=at_most, aborted_share=0.0, end_limit_s=30.0, partitions=PARTITIONS,
        payload_bytes=PAYLOAD, seed=number, bootstrap=bootstrap,
    )  # fmt: skip
    board = Board(folder / f"{number}.board")
    times: list[float] = []

    def until() -> bool:
        delivered = board.read().delivered
        if delivered and not times:
            times.append(time.perf_counter())
            times.append(float(delivered))
        return delivered >= records

    with Ledger(folder, f"copier-{number}.0") as ledger:
        CopierRole(spec, board).work(Confluent(), ledger, until)
        ended = time.perf_counter()
    return (records - times[1]) / (ended - times[0])


def plain(cluster: LocalCluster, folder: Path, records: int, at_most: int, number: int) -> float:
    """Run the same pipeline as any application would."""
    bootstrap = cluster.bootstrap_servers(Lane.CONSUME)
    consumer = Consumer(
        consumer_settings(
            ConsumerSpec(bootstrap, TOPIC, RUN, Mode.EXACTLY_ONCE, "read_committed", group=f"plain-{number}")
        )
    )
    consumer.subscribe([TOPIC])
    producer = Producer(
        producer_settings(
            ProducerSpec(bootstrap, TOPIC, Mode.EXACTLY_ONCE, transactional_id=f"plain-{number}")
        )
    )
    producer.init_transactions(30)
    output, sizes = dead_letters_of(TOPIC), random.Random(number)
    done, began, first = 0, 0.0, 0
    while done < records:
        batch = [r for r in consumer.consume(sizes.randint(1, at_most), 0.1) if r.error() is None]
        if not batch:
            continue
        producer.begin_transaction()
        ends: dict[int, int] = {}
        for record in batch:
            producer.produce(output, record.value(), record.key(), record.partition() or 0)
            ends[record.partition() or 0] = (record.offset() or 0) + 1
        producer.send_offsets_to_transaction(
            [TopicPartition(TOPIC, p, o) for p, o in ends.items()], consumer.consumer_group_metadata(), 30
        )
        producer.commit_transaction(30)
        done += len(batch)
        if not began:
            began, first = time.perf_counter(), done
    seconds = time.perf_counter() - began
    consumer.close()
    return (records - first) / seconds


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks pipeline", description=__doc__)
    parser.add_argument("--records", type=int, default=50_000, help="records of a round (default: 50000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each kind (default: 5)")
    parser.add_argument(
        "--at-most", type=int, default=1000, help="records of a transaction, at most (default: 1000)"
    )
    args = parser.parse_args(argv)
    with (
        tempfile.TemporaryDirectory() as temp,
        LocalCluster(Path(temp) / "cluster", combined=True) as cluster,
    ):
        for topic in (TOPIC, output_of(TOPIC), dead_letters_of(TOPIC)):
            cluster.create_topic(topic, TopicSettings(partitions=PARTITIONS))
        fill(cluster, Path(temp), args.records)
        rates: dict[str, list[float]] = {"plain": [], "recorded": []}
        loops: dict[str, Callable[..., float]] = {"plain": plain, "recorded": recorded}
        for number in range(args.rounds):
            for what, loop in loops.items():
                rates[what].append(loop(cluster, Path(temp), args.records, args.at_most, number + 1))
    without, with_it = (statistics.median(rates[what]) for what in ("plain", "recorded"))
    ratio = with_it / without
    print(f"pipeline: {without:,.0f} records/s without the ledger, {with_it:,.0f} with it: "
          f"{ratio:.2f} (goal {GOAL:.2f}) {'ok' if ratio >= GOAL else 'MISSED'}", flush=True)  # fmt: skip
    return 0 if ratio >= GOAL else 1
