"""InitProducerId: the raw request by which a producer takes over a transactional id, sent to its coordinator."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from harness.kafka.protocol.addresses import Address
from harness.kafka.protocol.call import Api, call

INIT_PRODUCER_ID = Api("InitProducerId", 22, 0, 4)


@dataclass(frozen=True)
class ProducerIdentity:
    """The coordinator's answer; the ids are valid only if `error` is 0."""

    error: int
    producer_id: int
    epoch: int


def init_producer_id(
    address: Address, transactional_id: str, lasts_ms: int, timeout_s: float
) -> ProducerIdentity:
    """Take over the transactional id. The producer that had it is fenced, and its open transaction is aborted.

    `lasts_ms` is the transaction timeout that the id has from then on.
    """
    values = {
        "transactional_id": transactional_id,
        "transaction_timeout": timedelta(milliseconds=lasts_ms),
    }
    answer = call(address, INIT_PRODUCER_ID, values, timeout_s)
    return ProducerIdentity(answer.error_code, answer.producer_id, answer.producer_epoch)
