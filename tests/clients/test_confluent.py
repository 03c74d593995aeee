"""The confluent client: one test for each row of its table of errors, and its settings by mode."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from harness.clients import confluent
from harness.clients.librdkafka import translation
from harness.contracts import ConsumerSpec, Lane, Mode, Outcome, ProducerOptions, ProducerSpec, TopicToRead
from harness.ledger.journal import Ledger
from harness.ledger.message import Builder
from harness.workers.roles import final_reader

UNKNOWN_SENDS = {
    "_MSG_TIMED_OUT", "_TIMED_OUT", "_TRANSPORT", "_PURGE_QUEUE", "_PURGE_INFLIGHT", "_FATAL", "_STATE",
    "REQUEST_TIMED_OUT", "NETWORK_EXCEPTION", "NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE",
    "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "INVALID_PRODUCER_EPOCH", "KAFKA_STORAGE_ERROR", "UNKNOWN_TOPIC_OR_PART", "TOPIC_AUTHORIZATION_FAILED",
}  # fmt: skip
REJECTED_SENDS = {
    "MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_TIMESTAMP", "INVALID_REQUIRED_ACKS",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT", "_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC", "_INVALID_ARG",
}  # fmt: skip
REFUSED_COMMITS = {
    "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID",
    "STALE_MEMBER_EPOCH", "_NO_OFFSET",
}  # fmt: skip


def error(name: str, **kind: bool) -> KafkaError:
    return KafkaError(getattr(KafkaError, name), "text", **kind)


def test_a_report_without_error_is_acked() -> None:
    assert translation.send_outcome(None) is Outcome.ACKED
    assert translation.transaction_outcome(None) is Outcome.ACKED
    assert translation.commit_outcome(None) is Outcome.ACKED


@pytest.mark.parametrize("name", sorted(UNKNOWN_SENDS))
def test_a_send_that_may_have_been_written_is_unknown(name: str) -> None:
    assert translation.send_outcome(error(name)) is Outcome.UNKNOWN


@pytest.mark.parametrize("name", sorted(REJECTED_SENDS))
def test_a_send_that_can_never_be_written_is_rejected(name: str) -> None:
    assert translation.send_outcome(error(name)) is Outcome.REJECTED


def test_the_table_has_no_row_without_a_test() -> None:
    assert {getattr(KafkaError, n) for n in REJECTED_SENDS} == set(translation.CERTAINLY_NOT_WRITTEN)
    assert {getattr(KafkaError, n) for n in REFUSED_COMMITS} == set(translation.COMMIT_REFUSED)


@pytest.mark.parametrize("name", sorted(REFUSED_COMMITS))
def test_a_commit_that_the_group_refuses_is_rejected(name: str) -> None:
    assert translation.commit_outcome(error(name)) is Outcome.REJECTED


@pytest.mark.parametrize(
    "name", ["_TIMED_OUT", "_TRANSPORT", "COORDINATOR_NOT_AVAILABLE", "REQUEST_TIMED_OUT"]
)
def test_any_other_commit_error_is_unknown(name: str) -> None:
    assert translation.commit_outcome(error(name)) is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ({"txn_requires_abort": True}, Outcome.REJECTED),
        ({"retriable": True}, Outcome.UNKNOWN),
        ({"fatal": True}, Outcome.UNKNOWN),
        ({"fatal": True, "txn_requires_abort": True}, Outcome.UNKNOWN),
        ({}, Outcome.UNKNOWN),
    ],
)
def test_errors_at_the_end_of_a_transaction_become_outcomes(kind: dict[str, bool], outcome: Outcome) -> None:
    assert translation.transaction_outcome(error("_TIMED_OUT", **kind)) is outcome


@pytest.mark.parametrize(
    ("mode", "acks", "idempotent"),
    [
        (Mode.AT_MOST_ONCE, "0", False),
        (Mode.AT_LEAST_ONCE, "all", False),
        (Mode.IDEMPOTENT, "all", True),
        (Mode.EXACTLY_ONCE, "all", True),
    ],
)
def test_each_mode_has_its_settings(mode: Mode, acks: str, idempotent: bool) -> None:
    settings = translation.producer_settings(ProducerSpec("b:1", "t", mode))
    assert settings["acks"] == acks
    assert settings["enable.idempotence"] is idempotent
    assert "transactional.id" not in settings
    if mode is Mode.AT_MOST_ONCE:
        assert settings["retries"] == 0


def test_extra_settings_win_and_transactional_id_is_set() -> None:
    spec = ProducerSpec(
        "b:1", "t", Mode.EXACTLY_ONCE, "id-1", ProducerOptions(linger_ms=77, extra={"linger.ms": 99})
    )
    settings = translation.producer_settings(spec)
    assert settings["transactional.id"] == "id-1"
    assert settings["linger.ms"] == 99


def test_a_group_member_commits_by_itself_only() -> None:
    settings = translation.consumer_settings(
        ConsumerSpec("b:1", "t", 1, Mode.AT_LEAST_ONCE, "read_committed", "g")
    )
    assert settings["enable.auto.commit"] is False
    assert settings["isolation.level"] == "read_committed"
    assert settings["auto.offset.reset"] == "earliest"


def test_the_final_reader_compares_the_checksums_of_batches() -> None:
    """TRUST T9. Other readers do not: their records are compared with the log."""
    spec = ConsumerSpec("b:1", "t", 1, Mode.AT_LEAST_ONCE, "read_committed", assign={0: 0})
    assert "check.crcs" not in translation.consumer_settings(spec)
    assert translation.consumer_settings(replace(spec, check_crcs=True))["check.crcs"] is True


def test_the_final_reader_opens_readers_that_compare_them(tmp_path: Path) -> None:
    """TRUST T9."""
    opened: list[ConsumerSpec] = []

    class Notes:
        def open_producer(self, settings: ProducerSpec) -> Any:
            raise AssertionError("a reading opens no producer")

        def open_consumer(self, settings: ConsumerSpec, on_assignment: Any) -> Any:
            opened.append(settings)

    topic = TopicToRead("t", 1)
    spec = final_reader.FinalReaderSpec(
        name="final-reader", mode=Mode.IDEMPOTENT, lane=Lane.CONTROL, topics=(topic,), limit_s=1.0
    )
    with Ledger(tmp_path, "reader") as ledger:
        reading = final_reader._Reading(spec, Notes(), 0, topic, 0.0, ledger)
        reading._open("read_committed", {0: 0})
    assert opened
    assert all(one.check_crcs for one in opened)


def test_a_record_that_never_got_a_partition_has_an_unknown_outcome() -> None:
    """The library reports None as its partition."""
    options = ProducerOptions(delivery_timeout_ms=100, extra={"log_level": 0})
    producer = confluent.ConfluentProducer(
        ProducerSpec("127.0.0.1:1", "t", Mode.AT_LEAST_ONCE, options=options)
    )
    outcomes: list[tuple[int, ...]] = []
    for message in Builder(run=1, session=1, length=64).build(5, [3], [-1], 0):
        producer.send(message, lambda *outcome: outcomes.append(outcome))
    assert producer.flush(10.0) == 0
    assert outcomes == [(5, Outcome.UNKNOWN, -1, -1, KafkaError._MSG_TIMED_OUT)]


def test_it_reports_the_loaded_versions() -> None:
    versions = confluent.Confluent().versions()
    assert versions["confluent-kafka"] == metadata.version("confluent-kafka")
    assert versions["librdkafka"].count(".") == 2
