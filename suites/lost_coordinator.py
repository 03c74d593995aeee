"""A small application by the client library alone: transactions with offsets, one after the other. Tells each step in a line.

`python -m suites.lost_coordinator BOOTSTRAP INPUT OUTPUT GROUP TRANSACTIONAL_ID IDLE_MS`, of suites/test_lost_coordinator.py.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, Producer, TopicPartition

from harness.clients._librdkafka import consumer_settings, producer_settings
from harness.contracts import ConsumerSpec, Mode, ProducerSpec

SEND_OFFSETS_LIMIT_S = 5.0
SENDS_OFFSETS, COMMITTED = "sends offsets", "committed"


def main(bootstrap: str, source: str, output: str, group: str, transactional_id: str, idle_ms: str) -> None:
    consumer = Consumer(
        consumer_settings(
            ConsumerSpec(bootstrap, source, 0, Mode.EXACTLY_ONCE, "read_committed", group=group)
        )
    )
    consumer.subscribe([source])
    while not consumer.assignment():
        consumer.poll(0.1)
    spec = ProducerSpec(bootstrap, output, Mode.EXACTLY_ONCE, transactional_id=transactional_id,
                        extra={"connections.max.idle.ms": int(idle_ms)})  # fmt: skip
    producer = Producer(producer_settings(spec))
    producer.init_transactions(30)
    for number in range(1, 1_000_000):
        producer.begin_transaction()
        producer.produce(output, b"an effect", partition=number % 3)
        print(SENDS_OFFSETS, number, flush=True)
        producer.send_offsets_to_transaction(
            [TopicPartition(source, 0, number)], consumer.consumer_group_metadata(), SEND_OFFSETS_LIMIT_S
        )
        producer.commit_transaction(30)
        print(COMMITTED, number, flush=True)
        consumer.poll(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
