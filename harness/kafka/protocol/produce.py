"""Append one record at one chosen broker."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.schema.types import ProducerId
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from harness.kafka.protocol.addresses import Address, shown
from harness.kafka.protocol.call import Api, call
from harness.kafka.protocol.messages import WireError, first

PRODUCE = Api("Produce", 0, 3, 12)
_ALL_REPLICAS = -1
_CHECKSUM_AT = 17  # behind base offset, length, leader epoch and magic


@dataclass(frozen=True)
class Appended:
    offset: int
    time_ms: int  # by the broker's clock if the topic has LogAppendTime; else -1


def produce(address: Address, topic: str, partition: int, value: bytes, timeout_s: float) -> int:
    """Append one record with acks=all at this broker; return its offset."""
    return append(address, topic, partition, value, timeout_s).offset


def append(address: Address, topic: str, partition: int, value: bytes, timeout_s: float) -> Appended:
    """Append one record with acks=all at this broker; return its offset, and the time by the broker's clock."""
    appended = _answer(address, topic, partition, record_batch(value, int(time.time() * 1000)), timeout_s)
    if appended.error_code:
        raise WireError(
            f"{shown(address)} refused a record for {topic}-{partition}: error {appended.error_code}"
        )
    return Appended(appended.base_offset, appended.log_append_time)


def refusal(address: Address, topic: str, partition: int, timeout_s: float) -> int:
    """Return the error code for a record with acks=all and a wrong checksum: it is never written.

    A leader compares checksums last, so every other reason to refuse a record comes first.
    """
    batch = bytearray(record_batch(b"refused", int(time.time() * 1000)))
    batch[_CHECKSUM_AT] ^= 0xFF
    return int(_answer(address, topic, partition, bytes(batch), timeout_s).error_code)


def _answer(address: Address, topic: str, partition: int, records: bytes, timeout_s: float) -> Any:
    values = {
        "acks": _ALL_REPLICAS,
        "timeout": timedelta(seconds=timeout_s),
        "topic_data": [{"name": topic, "partition_data": [{"index": partition, "records": records}]}],
    }
    answer = call(address, PRODUCE, values, timeout_s)
    answers = [one for topics in answer.responses for one in topics.partition_responses]
    return first(answers, f"{shown(address)} did not answer for a record of {topic}-{partition}")


def record_batch(value: bytes, timestamp_ms: int) -> bytes:
    """Return a batch (magic 2) with one record without key and headers."""
    moment = TZAwareMicros.parse(datetime.fromtimestamp(timestamp_ms / 1000, UTC))
    record = Record(attributes=i8(0), timestamp=moment, offset=i64(0), key=None, value=value, headers=())
    buffer = io.BytesIO()
    write_new_batch(
        buffer,
        NewRecordBatch(
            producer_id=ProducerId(-1),
            producer_epoch=i16(-1),
            partition_leader_epoch=i32(-1),
            base_sequence=i32(-1),
            records=(record,),
            attributes=i16(0),
        ),
    )
    return buffer.getvalue()
