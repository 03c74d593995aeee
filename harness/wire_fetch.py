"""Reading from one chosen broker: a single Fetch over a plain socket (harness.wire has the rest)."""

from __future__ import annotations

import struct

from harness.wire import Address, Reader, WireError, ask, request

_FETCH = 1
_VERSION = 4  # the oldest that all brokers speak which are supported here


def fetch(address: Address, topic: str, partition: int, offset: int, timeout_s: float) -> int:
    """Read from `offset` on at this very broker: how many bytes came. At least one whole batch, if there is one."""
    name = struct.pack(">h", len(topic.encode())) + topic.encode()
    limits = struct.pack(">iiiib", -1, int(timeout_s * 1000), 1, 1, 0)  # a client; wait; least and most bytes
    wanted = struct.pack(">i", 1) + name + struct.pack(">iiqi", 1, partition, offset, 1)
    return parse_fetch(ask(address, request(_FETCH, _VERSION, limits + wanted), timeout_s), topic)


def parse_fetch(answer: bytes, topic: str) -> int:
    reader = Reader(answer)
    reader.take("i"), reader.take("i"), reader.string(), reader.take("i")  # throttle time; one topic
    partition, error = reader.take("i"), reader.take("h")
    if error:
        raise WireError(f"a fetch from {topic}-{partition} was refused: error {error}")
    reader.take("q"), reader.take("q")  # high watermark, last stable offset
    reader.array(lambda: (reader.take("q"), reader.take("q")))  # aborted transactions
    return int(reader.take("i"))
