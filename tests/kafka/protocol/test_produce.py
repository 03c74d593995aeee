"""The probe that asks a leader for a refusal: a batch that it can never write."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest
from crc32c import crc32c

from harness.kafka.protocol import produce

PLACE = ("broker-1", 9092)


def answering(code: int, asked: list[Any]) -> Any:
    def call(address: Any, api: Any, values: Any, timeout_s: float) -> Any:
        asked.append(values)
        one = SimpleNamespace(error_code=code, base_offset=-1, log_append_time=-1)
        return SimpleNamespace(responses=[SimpleNamespace(partition_responses=[one])])

    return call


def test_a_refusal_returns_the_error_of_the_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(produce, "call", answering(19, asked))
    assert produce.refusal(PLACE, "orders", 2, 1.0) == 19
    (topic,) = asked[0]["topic_data"]
    assert (asked[0]["acks"], topic["name"], topic["partition_data"][0]["index"]) == (-1, "orders", 2)
    records = topic["partition_data"][0]["records"]
    (checksum,) = struct.unpack_from(">I", records, 17)
    assert checksum != crc32c(records[21:]), "the leader must never write it"
