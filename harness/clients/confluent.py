"""The confluent-kafka client: a producer and a consumer of librdkafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import (
    KafkaError,
    KafkaException,
    Producer,
)

from harness.clients.librdkafka.abandoned_call import call_or_give_up
from harness.clients.librdkafka.consumer import ConfluentConsumer
from harness.clients.librdkafka.share_member import LibrdkafkaShareMember
from harness.clients.librdkafka.translation import (
    described,
    producer_settings,
    send_outcome,
    transaction_outcome,
    unmixed,
)
from harness.contracts import Consumer as Member
from harness.contracts import (
    ConsumerSpec,
    OnAssignment,
    OnOutcome,
    Outcome,
    ProducerLost,
    ProducerSpec,
)
from harness.kafka.client_settings import named
from harness.ledger import message as msg

OPEN_LIMIT_S = 60.0  # after kills a fresh transactional producer was seen to take 10 s
GRACE_S = 1.0  # for a call to come to its own limit


class ConfluentProducer:
    def __init__(self, spec: ProducerSpec) -> None:
        settings = producer_settings(spec)
        self._topic, self._topics = spec.topic, (spec.topic, *spec.more_topics)
        self.trouble = ""
        self._has_offsets = str(settings.get("acks")) != "0"  # with acks=0 offsets are absent or invented
        self._producer = Producer(settings)
        if spec.transactional_id:
            self._init_transactions()

    def _init_transactions(self) -> None:
        deadline = time.monotonic() + OPEN_LIMIT_S
        while True:
            try:
                self._producer.init_transactions(10)
                return
            except KafkaException as problem:
                error = problem.args[0]
                if not error.retriable() or time.monotonic() > deadline:
                    raise ProducerLost(f"init_transactions: {error.str()}") from problem

    def send(self, message: msg.Message, on_outcome: OnOutcome) -> None:
        seq, has_offsets = message.seq, self._has_offsets

        def report(error: KafkaError | None, record: Any) -> None:
            partition, offset = record.partition(), record.offset() if has_offsets else -1
            partition = -1 if partition is None else partition  # None: it never got one, its topic vanished
            if error is None:
                on_outcome(seq, 1, partition, -1 if offset is None else offset, 0)
            else:
                on_outcome(seq, send_outcome(error), partition, -1, error.code())

        while True:
            try:
                self._producer.produce(
                    self._topics[message.topic],
                    message.payload,
                    message.key,
                    message.partition,
                    on_delivery=report,
                    timestamp=message.timestamp_ms,
                    headers={msg.HEADER_NAME: message.header},
                )
                return
            except BufferError:
                # The local queue is full: the record was not accepted, so a retry is not a second attempt.
                self.poll(0.05)
            except KafkaException as problem:
                error = problem.args[0]
                if send_outcome(error) is Outcome.REJECTED:
                    on_outcome(seq, Outcome.REJECTED, -1, -1, error.code())
                    return
                on_outcome(seq, Outcome.UNKNOWN, -1, -1, error.code())
                raise ProducerLost(f"produce: {described(error)}") from problem

    def poll(self, timeout_s: float) -> None:
        self._serve(self._producer.poll, timeout_s)

    def flush(self, timeout_s: float) -> int:
        return self._serve(self._producer.flush, timeout_s)

    def _serve(self, call: Callable[[float], int], timeout_s: float) -> int:
        try:
            with unmixed():
                return int(call(timeout_s))
        except KafkaException as problem:  # the library raises a fatal error from the next call
            raise ProducerLost(f"{call.__name__}: {described(problem.args[0])}") from problem

    def begin(self) -> None:
        try:
            self._producer.begin_transaction()
        except KafkaException as problem:
            raise ProducerLost(f"begin_transaction: {described(problem.args[0])}") from problem

    def send_offsets(self, positions: Mapping[int, int], consumer: Member, timeout_s: float) -> Outcome:
        """Send the offsets of a consumer of this library, which may ignore the limit: docs/findings/librdkafka-5511.md."""
        try:
            offsets, member = consumer.offsets_for_transaction(positions)
            send = partial(self._producer.send_offsets_to_transaction, offsets, member, timeout_s)
            with unmixed():
                returned = call_or_give_up(send, timeout_s + GRACE_S)
        except KafkaException as problem:
            self.trouble = described(problem.args[0])
            return transaction_outcome(problem.args[0])
        if not returned:
            self.trouble = f"send_offsets_to_transaction has not returned after {timeout_s + GRACE_S:g} s, its limit is {timeout_s:g}"
            return Outcome.UNKNOWN
        return Outcome.ACKED

    def commit(self, timeout_s: float) -> Outcome:
        return self._end(self._producer.commit_transaction, timeout_s)

    def abort(self, timeout_s: float) -> Outcome:
        return self._end(self._producer.abort_transaction, timeout_s)

    def _end(self, call: Any, timeout_s: float) -> Outcome:
        try:
            with unmixed():
                call(timeout_s)
        except KafkaException as problem:
            self.trouble = described(problem.args[0])
            return transaction_outcome(problem.args[0])
        return Outcome.ACKED

    def partitions(self, timeout_s: float) -> int:
        try:
            known = self._producer.list_topics(self._topic, timeout_s).topics
        except KafkaException:
            return 0
        return len(known[self._topic].partitions) if self._topic in known else 0

    def close(self) -> None:
        self._producer.purge()
        with suppress(KafkaException), unmixed():  # a fenced producer: its user already knows
            self._producer.flush(1)


class Confluent:
    check_options = staticmethod(named)

    def open_producer(self, settings: ProducerSpec) -> ConfluentProducer:
        return ConfluentProducer(settings)

    def open_consumer(self, settings: ConsumerSpec, on_assignment: OnAssignment) -> ConfluentConsumer:
        return ConfluentConsumer(settings, on_assignment)

    def open_share_member(self, settings: ConsumerSpec) -> LibrdkafkaShareMember:
        return LibrdkafkaShareMember(settings)

    def versions(self) -> Mapping[str, str]:
        return {
            "confluent-kafka": str(confluent_kafka.__version__),
            "librdkafka": confluent_kafka.libversion()[0],
        }


client_class = Confluent
