"""The features of a cluster: the levels that each server supports, and the finalized levels, which are in use.

Raw requests, as in harness.kafka.protocol.raw_client. The levels decide which records and requests the servers use among themselves, so
that servers of several versions get along; `metadata.version` is one of them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.kafka.protocol.addresses import shown
from harness.kafka.protocol.call import Address, Api, Reader, WireError, ask, call, request
from harness.kafka.protocol.codec import compact_array, compact_text

METADATA_VERSION = "metadata.version"
_API_VERSIONS = 18
UPDATE_FEATURES = Api("UpdateFeatures", 57, 1, 1, flexible=0)
_UPGRADE = 1
# Version 3 leaves out features whose lowest level is 0; version 4 does not exist before Kafka 3.9.
_VERSIONS = (4, 3)
_UNSUPPORTED_VERSION = 35


@dataclass(frozen=True)
class Features:
    supported: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # lowest and highest level
    finalized: Mapping[str, int] = field(default_factory=dict)  # level; 0 and absent are the same
    epoch: int = -1  # of the finalized levels


def features(address: Address, timeout_s: float) -> Features:
    """Return the levels that this server supports, and those that it considers finalized."""
    body = compact_text("onceproof") + compact_text("1") + b"\0"
    for version in _VERSIONS:
        answer = ask(address, request(_API_VERSIONS, version, body, flexible=True), timeout_s)
        (error,) = struct.unpack_from(">h", answer)
        if error == 0:
            return parse_features(answer)
        if error != _UNSUPPORTED_VERSION:
            raise WireError(f"{shown(address)} does not report its features: error {error}")
    raise WireError(f"{shown(address)} is too old to have features")


def parse_features(answer: bytes) -> Features:
    reader = Reader(answer)
    reader.take("h")

    def api() -> None:
        reader.take("h"), reader.take("h"), reader.take("h")
        reader.tags()

    reader.compact_array(api)
    reader.take("i")  # throttle time
    supported: dict[str, tuple[int, int]] = {}
    finalized: dict[str, int] = {}
    epoch = -1
    for _ in range(reader.varint()):
        tag, size = reader.varint(), reader.varint()
        if tag == 0:
            supported = {
                name: (low, high) for name, low, high in reader.compact_array(lambda: _levels(reader))
            }
        elif tag == 1:
            epoch = reader.take("q")
        elif tag == 2:
            finalized = {name: high for name, high, _low in reader.compact_array(lambda: _levels(reader))}
        else:
            reader.take(f"{size}s")
    return Features(supported, finalized, epoch)


def _levels(reader: Reader) -> tuple[str, int, int]:
    found = reader.compact_string() or "", reader.take("h"), reader.take("h")
    reader.tags()
    return found


def raise_features(address: Address, levels: Mapping[str, int], timeout_s: float) -> None:
    """Finalize these levels, all or none; any broker passes the request on. WireError names a refused level and the reason."""
    updates = [
        compact_text(name) + struct.pack(">hb", level, _UPGRADE) + b"\0" for name, level in levels.items()
    ]
    body = struct.pack(">i", int(timeout_s * 1000)) + compact_array(updates) + b"\0\0"  # not only to validate
    _version, reader = call(address, UPDATE_FEATURES, lambda _: body, timeout_s)
    refused = _refusal(reader)
    if refused:
        raise WireError(f"the features were not raised: {refused}")


def parse_refusal(answer: bytes) -> str:
    """Return the reason of a refusal; empty if the request was accepted."""
    return _refusal(UPDATE_FEATURES.reader(1, answer))


def _refusal(reader: Reader) -> str:
    reader.take("i")  # throttle time
    error, text = reader.take("h"), reader.compact_string()
    if error:
        return text or f"error {error}"

    def one() -> str:
        name, problem, why = reader.compact_string(), reader.take("h"), reader.compact_string()
        reader.tags()
        return f"{name}: {why or f'error {problem}'}" if problem else ""

    return "; ".join(filter(None, reader.compact_array(one)))
