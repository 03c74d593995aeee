"""Translate for librdkafka: modes to its settings, and its errors to outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, libversion

from harness.contracts import ConsumerSpec, Mode, Outcome, ProducerSpec
from harness.kafka.client_settings import named

# A record that fails with one of these errors fails in the same way at each try, so no earlier try of the library can have
# been written. With any other error an earlier try may have been written: unknown (E1).
CERTAINLY_NOT_WRITTEN = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_REQUIRED_ACKS,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._INVALID_ARG,
    }
)
# The group no longer knows the member or its generation: the broker refused, nothing was stored.
COMMIT_REFUSED = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.FENCED_INSTANCE_ID,
        getattr(KafkaError, "STALE_MEMBER_EPOCH", 113),  # older libraries lack the name
        KafkaError._NO_OFFSET,
    }
)

COMMON: Mapping[str, Any] = {
    # Defaults of librdkafka wait up to 60 s for an answer that never comes and back off for up to 10 s: too
    # long for a run of seconds. Users who care about recovery time set these too.
    "socket.timeout.ms": 4000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 5000,
    "topic.metadata.refresh.fast.interval.ms": 100,
    "log_level": 3,
}
PRODUCER: Mapping[str, Any] = {
    "linger.ms": 20,
    "partitioner": "murmur2_random",  # as Java clients place keys
    "message.timeout.ms": 30000,
    "request.timeout.ms": 4000,
    "queue.buffering.max.messages": 200000,
}
MODES: Mapping[Mode, Mapping[str, Any]] = {
    Mode.AT_MOST_ONCE: {"acks": "0", "retries": 0, "enable.idempotence": False},
    Mode.AT_LEAST_ONCE: {"acks": "all", "retries": 2147483647, "enable.idempotence": False},
    Mode.IDEMPOTENT: {"acks": "all", "enable.idempotence": True},
    Mode.EXACTLY_ONCE: {"acks": "all", "enable.idempotence": True},
}
TRANSACTIONAL: Mapping[str, Any] = {
    "transaction.timeout.ms": 30000,
    # librdkafka 2.16 waits forever to send offsets, whatever limit it is given, if the broker that coordinated the group and
    # the transactions is gone: docs/findings/librdkafka-5511.md. It retries when a connection changes its state, so idle
    # connections are closed, but only after socket.timeout.ms, so that no request in flight is cut off. If that is not enough,
    # the call is given up (harness.clients.librdkafka.abandoned_call).
    "connections.max.idle.ms": 5000,
}
CONSUMER: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 10000,
    "heartbeat.interval.ms": 1000,
    "fetch.wait.max.ms": 100,
    "fetch.error.backoff.ms": 100,
    "fetch.queue.backoff.ms": 10,  # the default of 1000 stalls a fast reader
}
AUTO_COMMIT: Mapping[str, Any] = {
    "enable.auto.commit": True,
    "enable.auto.offset.store": False,  # else records count as processed as soon as they are polled
    "auto.commit.interval.ms": 200,
}
# Settings that older libraries refuse, by the first library that has them; they only save time.
SINCE: Mapping[str, int] = {"connections.max.idle.ms": 0x01070000, "fetch.queue.backoff.ms": 0x02020000}
SET_BY_THE_GROUP = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
)  # with group.protocol=consumer, on the broker


@contextmanager
def unmixed() -> Iterator[None]:
    """Raise the KafkaException behind a SystemError: the library wraps fatal errors that happen during a callback."""
    try:
        yield
    except SystemError as mixed:
        if isinstance(mixed.__cause__, KafkaException):
            raise mixed.__cause__ from mixed
        raise


def described(error: KafkaError) -> str:
    """Return the name of the error, which is stable, and its text."""
    return f"{error.name()}: {error.str()}"


def send_outcome(error: KafkaError | None) -> Outcome:
    """Return the outcome of a delivery report."""
    if error is None:
        return Outcome.ACKED
    return Outcome.REJECTED if error.code() in CERTAINLY_NOT_WRITTEN else Outcome.UNKNOWN


def transaction_outcome(error: KafkaError | None) -> Outcome:
    """Return the outcome of a transaction's end: REJECTED means that it has to be, and still can be, aborted."""
    if error is None:
        return Outcome.ACKED
    if error.txn_requires_abort() and not error.fatal():
        return Outcome.REJECTED
    return Outcome.UNKNOWN


def commit_outcome(error: KafkaError | None) -> Outcome:
    """Return the outcome of a group's commit."""
    if error is None:
        return Outcome.ACKED
    return Outcome.REJECTED if error.code() in COMMIT_REFUSED else Outcome.UNKNOWN


def known(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the loaded library has."""
    library = libversion()[1]
    return {name: value for name, value in settings.items() if SINCE.get(name, 0) <= library}


def producer_settings(spec: ProducerSpec) -> dict[str, Any]:
    """Return all settings of the library for a producer, those of the mode and of the caller."""
    settings = {
        **COMMON,
        **PRODUCER,
        **MODES[spec.mode],
        "bootstrap.servers": spec.bootstrap,
        **spec.security,
    }
    if spec.transactional_id:
        settings |= {**TRANSACTIONAL, "transactional.id": spec.transactional_id}
    return known(settings) | named(spec.options)


def consumer_settings(spec: ConsumerSpec) -> dict[str, Any]:
    """Return all settings of the library for a consumer."""
    settings = {**COMMON, **CONSUMER, "bootstrap.servers": spec.bootstrap, **spec.security}
    settings["isolation.level"] = spec.isolation
    settings["group.id"] = (
        spec.group or "onceproof-unused"
    )  # the library needs one even for manual assignment
    if spec.check_crcs:
        settings["check.crcs"] = True
    if spec.auto_commit:
        settings |= AUTO_COMMIT
    if spec.instance_id:
        settings["group.instance.id"] = spec.instance_id
    chosen = named(spec.options)
    if chosen.get("group.protocol") == "consumer":
        for name in SET_BY_THE_GROUP:
            settings.pop(name, None)
    return known(settings) | chosen
