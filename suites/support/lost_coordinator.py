"""A small application with the client library alone: transactions with offsets in sequence. Prints each step in a line.

Used by suites/hazards/test_lost_coordinator.py as
`python -m suites.support.lost_coordinator BOOTSTRAP INPUT OUTPUT GROUP TRANSACTIONAL_ID IDLE_MS [GIVES_UP_AFTER_S]`.
"""

from __future__ import annotations

import sys
from functools import partial

from confluent_kafka import Consumer, Producer, TopicPartition

from harness.clients.librdkafka.abandoned_call import call_or_give_up
from harness.clients.librdkafka.translation import consumer_settings, producer_settings
from harness.contracts import ConsumerSpec, Mode, ProducerOptions, ProducerSpec

SEND_OFFSETS_LIMIT_S = 5.0
SENDS_OFFSETS, COMMITTED, GAVE_UP = "sends offsets", "committed", "gave up"
FOR_EVER_S = 1e6


def main(
    bootstrap: str,
    source: str,
    output: str,
    group: str,
    transactional_id: str,
    idle_ms: str,
    gives_up_after_s: str = "",
) -> None:
    consumer = Consumer(
        consumer_settings(
            ConsumerSpec(bootstrap, source, 0, Mode.EXACTLY_ONCE, "read_committed", group=group)
        )
    )
    consumer.subscribe([source])
    while not consumer.assignment():
        consumer.poll(0.1)
    spec = ProducerSpec(bootstrap, output, Mode.EXACTLY_ONCE, transactional_id=transactional_id,
                        options=ProducerOptions(extra={"connections.max.idle.ms": int(idle_ms)}))  # fmt: skip
    patience_s = float(gives_up_after_s or FOR_EVER_S)
    producer = opened(spec)
    for number in range(1, 1_000_000):
        producer.begin_transaction()
        producer.produce(output, b"an effect", partition=number % 3)
        print(SENDS_OFFSETS, number, flush=True)
        offsets, member = [TopicPartition(source, 0, number)], consumer.consumer_group_metadata()
        send = partial(producer.send_offsets_to_transaction, offsets, member, SEND_OFFSETS_LIMIT_S)
        if not call_or_give_up(send, patience_s):
            print(GAVE_UP, number, flush=True)
            producer = opened(spec)  # ends the open transaction of the earlier producer, and fences it
            continue
        producer.commit_transaction(30)
        print(COMMITTED, number, flush=True)
        consumer.poll(0)


def opened(spec: ProducerSpec) -> Producer:
    producer = Producer(producer_settings(spec))
    producer.init_transactions(30)
    return producer


if __name__ == "__main__":
    main(*sys.argv[1:])
