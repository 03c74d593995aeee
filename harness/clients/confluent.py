"""The confluent-kafka client: a producer and a consumer of librdkafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import confluent_kafka
import numpy as np
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka import Message as Record

from harness.clients.librdkafka.abandoned_call import call_or_give_up
from harness.clients.librdkafka.listeners import listeners
from harness.clients.librdkafka.records import GETTERS
from harness.clients.librdkafka.share_member import LibrdkafkaShareMember
from harness.clients.librdkafka.translation import (
    commit_outcome,
    consumer_settings,
    described,
    producer_settings,
    send_outcome,
    transaction_outcome,
    unmixed,
)
from harness.clients.shared.records import FULL_BATCH, delivery_rows, each, effects_in
from harness.contracts import (
    Batch,
    ConsumerSpec,
    OnAssignment,
    OnOutcome,
    Outcome,
    ProducerLost,
    ProducerSpec,
)
from harness.contracts import Consumer as Member
from harness.kafka.client_settings import named
from harness.ledger import message as msg

OPEN_LIMIT_S = 60.0  # after kills a fresh transactional producer was seen to take 10 s
GRACE_S = 1.0  # for a call to come to its own limit
_ANOTHER_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


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


class ConfluentConsumer:
    def __init__(self, spec: ConsumerSpec, on_assignment: OnAssignment) -> None:
        self._spec, self._topic, self._effects = spec, spec.topic, spec.effects
        self._commits: list[tuple[Mapping[int, int], Outcome, str]] = []
        # Partition and first offset of batches with a wrong checksum.
        self._damaged: set[tuple[Any, Any]] = set()
        reports = {"on_commit": self._note_commit} if spec.auto_commit else {}
        self._consumer = Consumer({**consumer_settings(spec), **reports})
        if spec.assign is not None:
            self._consumer.assign([TopicPartition(spec.topic, p, o) for p, o in spec.assign.items()])
        elif spec.group:
            self._consumer.subscribe([spec.topic], **listeners(on_assignment))

    def poll(self, timeout_s: float, at_most: int = FULL_BATCH) -> Batch:
        records, errors, refused = self._consumer.consume(at_most, timeout_s), [], []
        ends: dict[Any, Any] = {}  # the library's types allow None where it never is
        reported = each(Record.error, records)
        if any(reported):  # usually none
            for record, error in zip(records, reported, strict=True):
                if error is None:
                    continue
                if error.code() == KafkaError._PARTITION_EOF:
                    ends[record.partition()] = record.offset()
                    continue
                errors.append(described(error))
                if error.code() == KafkaError._BAD_MSG:
                    refused.append((record.partition(), record.offset()))
            records = [record for record, error in zip(records, reported, strict=True) if error is None]
        values = each(Record.value, records)
        rows = delivery_rows(records, values, self._spec, GETTERS, self._damaged)
        positions = {}
        if len(rows):
            for partition in np.unique(rows["partition"]).tolist():
                positions[partition] = int(rows["offset"][rows["partition"] == partition].max()) + 1
        effects = effects_in(rows, values) if self._effects else None
        commits, self._commits = self._commits, []
        if refused and self._spec.check_crcs:
            self._read_on(refused)
        return Batch(rows, positions, ends, errors, effects, commits)

    def _read_on(self, refused: list[tuple[Any, Any]]) -> None:
        """Read on without comparing checksums: the library would fetch the damaged batch again and again.

        The damage is recorded at the first offset of the batch, unless a payload shows it anyway.
        """
        spec = self._spec
        assert spec.assign is not None, "checksums are compared by a reader that is assigned by hand"
        self._damaged |= {*refused}
        places = self._consumer.position([TopicPartition(spec.topic, p) for p in spec.assign])
        self._consumer.close()
        starts = {p.partition: p.offset if p.offset >= 0 else spec.assign[p.partition] for p in places}
        self._spec = replace(spec, check_crcs=False, assign=starts)
        self._consumer = Consumer(consumer_settings(self._spec))
        self._consumer.assign([TopicPartition(spec.topic, p, o) for p, o in starts.items()])

    def _note_commit(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        offsets = {place.partition: place.offset for place in places if place.offset >= 0 and not place.error}
        if offsets:
            self._commits.append((offsets, commit_outcome(error), error.name() if error else ""))

    def commit(self, positions: Mapping[int, int]) -> tuple[Outcome, str]:
        offsets = [TopicPartition(self._topic, p, o) for p, o in positions.items()]
        try:
            for place in self._consumer.commit(offsets=offsets, asynchronous=False) or []:
                if place.error is not None:
                    return commit_outcome(place.error), place.error.name()
        except KafkaException as problem:
            return commit_outcome(problem.args[0]), problem.args[0].name()
        return Outcome.ACKED, ""

    def store(self, positions: Mapping[int, int]) -> None:
        for partition, offset in positions.items():
            with suppress(KafkaException):  # the partition was revoked meanwhile: another member commits it
                self._consumer.store_offsets(offsets=[TopicPartition(self._topic, partition, offset)])

    def offsets_for_transaction(self, positions: Mapping[int, int]) -> tuple[list[TopicPartition], Any]:
        """Return the offsets and the member metadata that a producer adds to a transaction."""
        offsets = [TopicPartition(self._topic, p, o) for p, o in positions.items()]
        return offsets, self._consumer.consumer_group_metadata()

    def rewind(self, timeout_s: float) -> list[int] | None:
        mine = self._consumer.assignment()
        try:
            for place in self._committed(mine, timeout_s) if mine else []:
                offset = place.offset if place.offset >= 0 else OFFSET_BEGINNING
                self._consumer.seek(TopicPartition(place.topic, place.partition, offset))
        except KafkaException:  # the coordinator moves, or does not answer
            return None
        return [place.partition for place in mine]

    def _committed(self, places: list[TopicPartition], timeout_s: float) -> list[TopicPartition]:
        try:
            return self._consumer.committed(places, timeout=timeout_s)
        except KafkaException as problem:
            if problem.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:  # it has committed nothing yet
                return [TopicPartition(place.topic, place.partition) for place in places]
            raise

    def bounds(self, partition: int, timeout_s: float) -> tuple[int, int]:
        deadline = time.monotonic() + timeout_s
        while True:
            left_s = max(0.1, deadline - time.monotonic())
            try:
                found = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), left_s)
            except KafkaException as problem:
                # The library asks the leader from before a failover; it learns of the new one meanwhile.
                if problem.args[0].code() not in _ANOTHER_LEADER or time.monotonic() >= deadline:
                    raise
                time.sleep(0.1)
                continue
            if found is None:
                raise TimeoutError(f"no watermarks of {self._topic}-{partition} within {timeout_s:g} s")
            return int(found[0]), int(found[1])

    def close(self) -> None:
        self._consumer.close()


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
