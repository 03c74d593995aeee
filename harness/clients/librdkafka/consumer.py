"""The consumer of librdkafka, by confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Record

from harness.clients.librdkafka.listeners import listeners
from harness.clients.librdkafka.records import GETTERS
from harness.clients.librdkafka.translation import commit_outcome, consumer_settings, described
from harness.clients.shared.records import FULL_BATCH, delivery_rows, each, effects_in
from harness.contracts import Batch, ConsumerSpec, OnAssignment, Outcome

_ANOTHER_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


class ConfluentConsumer:
    """A member of a group, or a reader that is assigned by hand."""

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
