"""Read from one chosen broker by a single Fetch (harness.kafka.protocol.raw_client has the other requests)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from harness.kafka.protocol import messages
from harness.kafka.protocol.addresses import Address
from harness.kafka.protocol.call import Api, call
from harness.kafka.protocol.messages import WireError, first, partitions, reason

FETCH = Api("Fetch", 1, 4, 11)
_MOST = 2**31 - 1


def fetch(address: Address, topic: str, partition: int, offset: int, timeout_s: float) -> int:
    """Read from `offset` on at this broker; return the number of bytes: at least one whole batch, if there is one."""
    answer = call(address, FETCH, _values(topic, partition, offset, timeout_s, 1), timeout_s)
    if getattr(answer, "error_code", 0):
        raise WireError(f"a fetch from {topic} was refused: {reason(answer)}")
    found = first(partitions(answer.responses), f"no answer to a fetch from {topic}-{partition}")
    if found.error_code:
        raise WireError(f"a fetch from {topic}-{found.partition_index} was refused: {reason(found)}")
    return len(found.records or b"")


def endless_fetch(topic: str, partition: int, wait_s: float) -> bytes:
    """Return a request for more bytes than exist, which a leader answers when `wait_s` is over."""
    return messages.encode(FETCH.key, FETCH.first, _values(topic, partition, 0, wait_s, _MOST))


def _values(topic: str, partition: int, offset: int, wait_s: float, least_bytes: int) -> dict[str, Any]:
    one = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1}
    return {
        "max_wait": timedelta(seconds=wait_s),
        "min_bytes": least_bytes,
        "max_bytes": least_bytes,
        "topics": [{"topic": topic, "partitions": [one]}],
        "forgotten_topics_data": [],
    }
