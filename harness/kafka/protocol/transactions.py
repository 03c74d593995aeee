"""InitProducerId: the raw request by which a producer takes over a transactional id, sent to its coordinator."""

from __future__ import annotations

from dataclasses import dataclass

from harness.kafka.protocol.call import Address, Api, call
from harness.kafka.protocol.codec import Writer

INIT_PRODUCER_ID = Api("InitProducerId", 22, 0, 4, flexible=2)


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

    def body(version: int) -> Writer:
        made = INIT_PRODUCER_ID.writer(version).text(transactional_id).put("i", lasts_ms)
        if version >= 3:
            made.put("qh", -1, -1)  # this client had no producer with this id before
        return made.end()

    _version, reader = call(address, INIT_PRODUCER_ID, body, timeout_s)
    reader.take("i")  # throttle time
    return ProducerIdentity(reader.take("h"), reader.take("q"), reader.take("h"))
