"""The cost of recording: the same loops with and without the ledger, taking turns in one run.

Goals: with the ledger a producer reaches at least 92 %, a consumer at least 80 % of the records per second of
the same loop without it. These machines are noisy, so only the ratio counts, from the medians of several rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from harness.clients.confluent import ConfluentProducer
from harness.clients.librdkafka.consumer import ConfluentConsumer
from harness.clients.librdkafka.translation import consumer_settings
from harness.clusters.local import LocalCluster
from harness.contracts import ConsumerSpec, Lane, Mode, ProducerSpec, SenderSpec, TopicSettings
from harness.ledger.journal import AttemptJournal, Ledger, RowJournal
from harness.workers.counters import Board
from harness.workers.producer_session import Session

TOPIC, RUN, PARTITIONS = "onceproof-bench", 7, 3
GOALS = {"producer": 0.92, "consumer": 0.80}


class NoJournal(AttemptJournal):
    """A journal that writes nothing: only the loop itself remains."""

    def __init__(self) -> None:
        self.attempted = 0
        self.outcomes = [0, 0, 0]

    def attempts(self, *_: Any) -> None:
        return

    def outcome(self, seq: int, outcome: int, partition: int, offset: int, error: int) -> None:
        self.outcomes[outcome] += 1


def produce(cluster: LocalCluster, folder: Path, records: int, number: int, with_ledger: bool) -> float:
    """Records per second of an idempotent producer, acks=all, through the mesh."""
    spec = SenderSpec(
        name=f"producer-{number}", number=number, run=RUN, topic=TOPIC, mode=Mode.IDEMPOTENT, lane=Lane.PRODUCE,
        keyed=False, partitions=PARTITIONS, payload_bytes=128, seed=number,
        bootstrap=cluster.bootstrap_servers(Lane.PRODUCE),
    )  # fmt: skip
    with Ledger(folder, f"producer-{number}") as ledger:
        session = Session(spec, ledger, Board(folder / f"{number}.board"), 0)
        if not with_ledger:
            session.journal = NoJournal()
        producer = ConfluentProducer(ProducerSpec(spec.bootstrap, TOPIC, Mode.IDEMPOTENT))
        session.send(producer, session.next_messages(1))
        producer.flush(30)  # connected, producer id known
        began = time.perf_counter()
        for _ in range(records // 100):
            session.send(producer, session.next_messages(100))
            producer.poll(0)
        left = producer.flush(120)
        seconds = time.perf_counter() - began
        assert left == 0 and session.journal.outcomes[1] >= records, "not every record was acked"
    return records / seconds


def consume(cluster: LocalCluster, folder: Path, records: int, number: int, with_ledger: bool) -> float:
    """Records per second of a reader, from a warm page cache, through the mesh."""
    spec = ConsumerSpec(
        bootstrap=cluster.bootstrap_servers(Lane.CONSUME),
        topic=TOPIC,
        run=RUN,
        mode=Mode.IDEMPOTENT,
        isolation="read_committed",
        assign=dict.fromkeys(range(PARTITIONS), 0),
        compare_every=16,
    )
    return (_consume_recorded if with_ledger else _consume_plain)(
        spec, folder / f"{number}.deliveries", records
    )


def _consume_recorded(spec: ConsumerSpec, path: Path, records: int) -> float:
    consumer, journal, count = ConfluentConsumer(spec, lambda how, partitions: None), RowJournal(path), 0
    began = 0.0
    while count < records:
        batch = consumer.poll(1.0)
        if len(batch.rows):
            began = began or time.perf_counter()
            journal.append(batch.rows)
            count += len(batch.rows)
    seconds = time.perf_counter() - began
    consumer.close()
    journal.close()
    return count / seconds


def _consume_plain(spec: ConsumerSpec, path: Path, records: int) -> float:
    """Consume as any application does: take a batch, look for errors, take the values."""
    consumer, count, began = Consumer(consumer_settings(spec)), 0, 0.0
    consumer.assign([TopicPartition(TOPIC, p, 0) for p in range(PARTITIONS)])
    while count < records:
        values = [r.value() for r in consumer.consume(1000, 1.0) if r.error() is None]
        if values:
            began = began or time.perf_counter()
            count += len(values)
    seconds = time.perf_counter() - began
    consumer.close()
    return count / seconds


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks ledger", description=__doc__)
    parser.add_argument("--records", type=int, default=300_000, help="records of a round (default: 300000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each kind (default: 5)")
    args = parser.parse_args(argv)
    with (
        tempfile.TemporaryDirectory() as temp,
        LocalCluster(Path(temp) / "cluster", combined=True) as cluster,
    ):
        cluster.create_topic(TOPIC, TopicSettings(partitions=PARTITIONS))
        good = True
        for what, loop in (("producer", produce), ("consumer", consume)):
            good &= _compare(what, partial(loop, cluster, Path(temp), args.records), args.rounds)
    return 0 if good else 1


def _compare(what: str, loop: Callable[[int, bool], float], rounds: int) -> bool:
    loop(99, True)  # warm-up
    rates: dict[bool, list[float]] = {True: [], False: []}
    for number in range(rounds):
        for with_ledger in (False, True):
            rates[with_ledger].append(loop(number * 2 + with_ledger + 1, with_ledger))
    plain, recorded = statistics.median(rates[False]), statistics.median(rates[True])
    ratio, goal = recorded / plain, GOALS[what]
    print(f"{what}: {plain:,.0f} records/s without the ledger, {recorded:,.0f} with it: "
          f"{ratio:.2f} (goal {goal:.2f}) {'ok' if ratio >= goal else 'MISSED'}", flush=True)  # fmt: skip
    return ratio >= goal
