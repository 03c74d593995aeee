"""A Kafka server of literal bytes: it offers given versions and gives given answers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping

import pytest

from harness.kafka.protocol import call

API_VERSIONS = 18
CORRELATION = b"\0\0\0\1"  # answers begin with it


def offer(versions: Mapping[int, tuple[int, int]], error: int = 0) -> bytes:
    """Return the answer to ApiVersions in version 0."""
    ranges = b"".join(struct.pack(">hhh", key, *span) for key, span in versions.items())
    return struct.pack(">hi", error, len(versions)) + ranges


def serve(
    monkeypatch: pytest.MonkeyPatch, versions: Mapping[int, tuple[int, int]], answers: Iterable[bytes]
) -> list[bytes]:
    """Replace every server by this one; return the requests sent to it, without those for its versions.

    Answers are given without their size and correlation id.
    """
    sent: list[bytes] = []
    left = iter(answers)

    def exchange(message: bytes) -> bytes:
        if struct.unpack_from(">hh", message, 4) == (API_VERSIONS, 0):
            return CORRELATION + offer(versions)
        sent.append(message)
        return CORRELATION + next(left)

    def connected(
        _address: object, _timeout_s: float, talk: Callable[[Callable[[bytes], bytes]], object]
    ) -> object:
        return talk(exchange)

    monkeypatch.setattr(call, "_connected", connected)
    return sent
