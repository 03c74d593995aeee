"""Rows of records that were read: damage of the payload and of what is around it."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME
from confluent_kafka import Message as Record

from harness.clients.librdkafka.records import GETTERS
from harness.clients.shared.records import FULL_BATCH, delivery_rows
from harness.contracts import ConsumerSpec, Mode
from harness.ledger.message import BAD_HEADER, BAD_KEY, BAD_PAYLOAD, BAD_TIMESTAMP, HEADER_NAME, Builder

RUN, T = 7, 1_700_000_000_000


def flags(count: int, damage: dict[int, dict[str, Any]], compare_every: int = 16) -> dict[int, int]:
    """Return the flags of the damaged ones of `count` records, by their number."""
    records = []
    for message in Builder(RUN, 1, 64).build(0, [5] * count, [-1] * count, T):
        fields: dict[str, Any] = {
            "key": message.key,
            "value": message.payload,
            "headers": [(HEADER_NAME, message.header)],
            "timestamp": (TIMESTAMP_CREATE_TIME, T),
        }
        records.append(
            Record(topic="t", partition=0, offset=message.seq, **fields | damage.get(message.seq, {}))
        )
    spec = ConsumerSpec(
        "", "t", run=RUN, mode=Mode.AT_LEAST_ONCE, isolation="read_committed", compare_every=compare_every
    )
    rows = delivery_rows(records, [record.value() for record in records], spec, GETTERS)
    assert rows["offset"].tolist() == rows["seq"].tolist() or damage
    return {number: flag for number, flag in enumerate(rows["flags"].tolist()) if flag}


DAMAGE: dict[int, dict[str, Any]] = {
    2: {"key": b"k6"},
    3: {"headers": [(HEADER_NAME, b"other")]},
    4: {"timestamp": (TIMESTAMP_CREATE_TIME, T + 1)},
    5: {"timestamp": (TIMESTAMP_LOG_APPEND_TIME, T + 1)},  # the broker's time, by design
    6: {"value": b"\0" * 64},
    7: {"headers": None},
}
FOUND = {2: BAD_KEY, 3: BAD_HEADER, 4: BAD_TIMESTAMP, 6: BAD_PAYLOAD, 7: BAD_HEADER}


def test_sound_records_have_no_flags() -> None:
    assert flags(20, {}) == {}


@pytest.mark.parametrize(("count", "compare_every"), [(20, 16), (FULL_BATCH - 1, 16), (FULL_BATCH, 1)])
def test_every_damage_is_flagged(count: int, compare_every: int) -> None:
    assert flags(count, DAMAGE, compare_every) == FOUND


def test_of_a_full_batch_a_sample_is_compared_and_every_payload() -> None:
    damage = {**DAMAGE, 32: {"key": None}, 48: {"headers": []}}
    assert flags(FULL_BATCH, damage) == {6: BAD_PAYLOAD, 32: BAD_KEY, 48: BAD_HEADER}
