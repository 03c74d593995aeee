"""Choices of applications that producers make: old create times, records sent again, and options of a single producer."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from harness.contracts import Mode, Outcome, Producer, ProducerOptions
from harness.contracts.client import OnOutcome
from harness.ledger.journal import Ledger
from harness.ledger.message import Message
from harness.scenario import ProducerSettings, Scenario
from harness.workers.counters import Board
from harness.workers.producer_session import Session
from harness.workloads.produce_consume import ProduceConsume
from tests.workers.roles.test_sessions import SPEC


class Fails:
    """A producer that reports the outcome UNKNOWN for the first two records, and ACKED for the others."""

    def __init__(self) -> None:
        self.sent: list[Message] = []

    def send(self, message: Message, on_outcome: OnOutcome) -> None:
        self.sent.append(message)
        outcome = Outcome.UNKNOWN if len(self.sent) <= 2 else Outcome.ACKED
        on_outcome(message.seq, outcome, 0, -1, 0)


@pytest.mark.parametrize("keyed", [True, False])
def test_a_record_of_unknown_outcome_is_sent_again_as_a_new_message(tmp_path: Path, keyed: bool) -> None:
    producer = Fails()
    with Ledger(tmp_path, "producer-1.0") as book:
        spec = replace(SPEC, keyed=keyed, keys=1000, sends_again=True)
        session = Session(spec, book, Board(tmp_path / "board"), 0)
        for count in (3, 1, 4):
            session.send(cast(Producer, producer), session.next_messages(count))
    places = [(message.key, message.partition) for message in producer.sent]
    assert places[3:5] == places[:2]
    assert [message.seq for message in producer.sent] == list(range(8)), "each is a message of its own"


def test_create_times_can_be_in_the_past(tmp_path: Path) -> None:
    with Ledger(tmp_path, "producer-1.0") as book:
        session = Session(replace(SPEC, age_s=3600.0), book, Board(tmp_path / "board"), 0)
        (message,) = session.next_messages(1)
    assert 3600 <= time.time() - message.timestamp_ms / 1000 < 3660


def test_a_producer_can_have_options_of_its_own() -> None:
    producers = ProducerSettings(
        keyed=2, keyless=1, linger_ms=5, each=(ProducerOptions(), ProducerOptions(partitioner="crc32"))
    )
    scenario = Scenario(name="each", mode=Mode.IDEMPOTENT, producers=producers)
    options = [spec.producer for spec in ProduceConsume(scenario, "t", "g").producers()]
    assert [one.partitioner for one in options] == [None, "crc32", None]
    assert [one.linger_ms for one in options] == [5, 5, 5]
    assert scenario.describe()["producers"]["each"] == [{"extra": {}}, {"partitioner": "crc32", "extra": {}}]


def test_wrong_settings_are_named() -> None:
    with pytest.raises(ValueError, match="each has options of 2 producers; there are 1"):
        ProducerSettings(keyed=1, keyless=0, each=(ProducerOptions(),) * 2)
    with pytest.raises(ValueError, match="age_s is 0 or more, not -1"):
        ProducerSettings(age_s=-1)
