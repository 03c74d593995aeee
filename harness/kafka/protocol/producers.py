"""The raw request for the active producers of partitions: their open transactions and the first offset of each."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from harness.kafka.protocol.call import Address, Api, WireError, call
from harness.kafka.protocol.codec import Reader, compact_array, compact_text

DESCRIBE_PRODUCERS = Api("DescribeProducers", 61, 0, 0, flexible=0)
_NONE = -1


@dataclass(frozen=True)
class OpenTransaction:
    partition: int
    producer_id: int
    epoch: int
    since: int  # its first offset in the partition


def open_transactions(
    address: Address, topic: str, partitions: Sequence[int], timeout_s: float
) -> list[OpenTransaction]:
    """Return the open transactions in these partitions, as their leader reports."""
    asked = compact_array(struct.pack(">i", partition) for partition in partitions)
    body = compact_array([compact_text(topic) + asked + b"\0"]) + b"\0"
    _version, reader = call(address, DESCRIBE_PRODUCERS, lambda _: body, timeout_s)
    return _producers(reader)


def parse_producers(answer: bytes) -> list[OpenTransaction]:
    return _producers(DESCRIBE_PRODUCERS.reader(0, answer))


def _producers(reader: Reader) -> list[OpenTransaction]:
    reader.take("i")  # throttle time

    def producer() -> tuple[int, int, int]:
        producer_id, epoch = reader.take("q"), reader.take("i")
        (
            reader.take("i"),
            reader.take("q"),
            reader.take("i"),
        )  # last sequence number and time, coordinator's epoch
        since = reader.take("q")
        reader.tags()
        return producer_id, epoch, since

    def partition() -> list[OpenTransaction]:
        number, error, text = reader.take("i"), reader.take("h"), reader.compact_string()
        active = reader.compact_array(producer)
        reader.tags()
        if error:
            raise WireError(
                f"the leader did not list the producers of partition {number}: {text or f'error {error}'}"
            )
        return [OpenTransaction(number, *one) for one in active if one[2] != _NONE]

    def topic() -> tuple[list[OpenTransaction], ...]:
        reader.compact_string()
        partitions = reader.compact_array(partition)
        reader.tags()
        return partitions

    return [one for partitions in reader.compact_array(topic) for each in partitions for one in each]
