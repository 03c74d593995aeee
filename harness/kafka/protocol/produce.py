"""Append one record at one chosen broker."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass

from harness.kafka.protocol.addresses import shown
from harness.kafka.protocol.call import Address, Api, WireError, call
from harness.kafka.protocol.codec import Writer

PRODUCE = Api("Produce", 0, 3, 12, flexible=9)


@dataclass(frozen=True)
class Appended:
    offset: int
    time_ms: int  # by the broker's clock if the topic has LogAppendTime; else -1


def produce(address: Address, topic: str, partition: int, value: bytes, timeout_s: float) -> int:
    """Append one record with acks=all at this broker; return its offset."""
    return append(address, topic, partition, value, timeout_s).offset


def append(address: Address, topic: str, partition: int, value: bytes, timeout_s: float) -> Appended:
    """Append one record with acks=all at this broker; return its offset, and the time by the broker's clock."""
    batch = record_batch(value, int(time.time() * 1000))

    def body(version: int) -> Writer:
        made = PRODUCE.writer(version)
        made.text(None).put("hi", -1, int(timeout_s * 1000))  # no transaction, acks=all

        def one_partition(number: int) -> None:
            made.put("i", number).data(batch).end()

        def one_topic(name: str) -> None:
            made.text(name).items([partition], one_partition).end()

        return made.items([topic], one_topic).end()

    _version, reader = call(address, PRODUCE, body, timeout_s)

    # One topic, one partition: whatever follows is not read.
    if reader.count() < 1 or reader.text() is None or reader.count() < 1:
        raise WireError(f"{shown(address)} did not answer for a record of {topic}-{partition}")
    _index, error = reader.take("i"), int(reader.take("h"))
    appended = Appended(int(reader.take("q")), int(reader.take("q")))
    if error:
        raise WireError(f"{shown(address)} refused a record for {topic}-{partition}: error {error}")
    return appended


def record_batch(value: bytes, timestamp_ms: int) -> bytes:
    """Return a batch (magic 2) with one record without key and headers; `value` has up to 50 bytes."""
    if len(value) > 50:  # so that every length below fits one byte of a zigzag varint
        raise ValueError(f"a probe's value has at most 50 bytes, not {len(value)}")
    record = b"\0\0\0\x01" + bytes([len(value) * 2]) + value + b"\0"
    record = bytes([len(record) * 2]) + record
    checked = struct.pack(">hiqqqhii", 0, 0, timestamp_ms, timestamp_ms, -1, -1, -1, 1) + record
    tail = struct.pack(">ibI", -1, 2, crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(tail)) + tail


def crc32c(data: bytes) -> int:
    """Return the checksum of record batches (Castagnoli), computed bit by bit: fast enough for a probe."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF
