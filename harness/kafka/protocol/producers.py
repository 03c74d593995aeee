"""The raw request for the active producers of partitions: their open transactions and the first offset of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.kafka.protocol.addresses import Address
from harness.kafka.protocol.call import Api, call
from harness.kafka.protocol.messages import WireError, partitions, reason

DESCRIBE_PRODUCERS = Api("DescribeProducers", 61, 0, 0)
_NONE = -1


@dataclass(frozen=True)
class OpenTransaction:
    partition: int
    producer_id: int
    epoch: int
    since: int  # its first offset in the partition


def open_transactions(
    address: Address, topic: str, numbers: Sequence[int], timeout_s: float
) -> list[OpenTransaction]:
    """Return the open transactions in these partitions, as their leader reports."""
    values = {"topics": [{"name": topic, "partition_indexes": numbers}]}
    answer = call(address, DESCRIBE_PRODUCERS, values, timeout_s)
    described = partitions(answer.topics)
    for one in described:
        if one.error_code:
            raise WireError(
                f"the leader did not list the producers of partition {one.partition_index}: {reason(one)}"
            )
    return [
        OpenTransaction(
            one.partition_index,
            producer.producer_id,
            producer.producer_epoch,
            producer.current_txn_start_offset,
        )
        for one in described
        for producer in one.active_producers
        if producer.current_txn_start_offset != _NONE
    ]
