"""Append one record at one chosen broker."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.schema.types import ProducerId
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from harness.kafka.protocol.addresses import Address, shown
from harness.kafka.protocol.call import Api, call
from harness.kafka.protocol.messages import WireError, first

PRODUCE = Api("Produce", 0, 3, 12)
_ALL_REPLICAS = -1


@dataclass(frozen=True)
class Appended:
    offset: int
    time_ms: int  # by the broker's clock if the topic has LogAppendTime; else -1


def produce(address: Address, topic: str, partition: int, value: bytes, timeout_s: float) -> int:
    """Append one record with acks=all at this broker; return its offset."""
    return append(address, topic, partition, value, timeout_s).offset


def append(address: Address, topic: str, partition: int, value: bytes, timeout_s: float) -> Appended:
    """Append one record with acks=all at this broker; return its offset, and the time by the broker's clock."""
    batch = {"index": partition, "records": record_batch(value, int(time.time() * 1000))}
    values = {
        "acks": _ALL_REPLICAS,
        "timeout": timedelta(seconds=timeout_s),
        "topic_data": [{"name": topic, "partition_data": [batch]}],
    }
    answer = call(address, PRODUCE, values, timeout_s)
    answers = [one for topics in answer.responses for one in topics.partition_responses]
    appended = first(answers, f"{shown(address)} did not answer for a record of {topic}-{partition}")
    if appended.error_code:
        raise WireError(
            f"{shown(address)} refused a record for {topic}-{partition}: error {appended.error_code}"
        )
    return Appended(appended.base_offset, appended.log_append_time)


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
