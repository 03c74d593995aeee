"""The raw request by which a producer takes over a transactional id, to the coordinator of the id."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from harness.wire import Address, Reader, ask, request

_INIT_PRODUCER_ID = 22


@dataclass(frozen=True)
class ProducerIdentity:
    """What a coordinator gave; with an error other than 0 nothing."""

    error: int
    producer_id: int
    epoch: int


def init_producer_id(
    address: Address, transactional_id: str, lasts_ms: int, timeout_s: float
) -> ProducerIdentity:
    """Become the producer of the id. Whoever was it before is fenced, and its open transaction is aborted.

    `lasts_ms` is the transaction timeout that the id has from then on.
    """
    name = transactional_id.encode()
    body = struct.pack(">h", len(name)) + name + struct.pack(">i", lasts_ms)
    reader = Reader(ask(address, request(_INIT_PRODUCER_ID, 1, body), timeout_s))
    reader.take("i")  # throttle time
    return ProducerIdentity(reader.take("h"), reader.take("q"), reader.take("h"))
