"""Settings of librdkafka by any of their names: the recorded properties of a session are those of the client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from harness.clients.confluent import Confluent
from harness.clients.librdkafka.translation import consumer_settings, producer_settings
from harness.contracts import ConsumerOptions, ConsumerSpec, Mode, ProducerOptions, ProducerSpec, given
from harness.errors import UsageError
from harness.kafka.client_settings import ALIASES, NAMES, canonical, effective, named, promised
from harness.scenario import ConsumerSettings, PipelineSettings, ProducerSettings, Scenario
from harness.workers.roles.copier import CopierRoleSpec
from harness.workloads.transactional_copy import TransactionalCopy
from harness.workloads.transactional_produce import TransactionalProduce


def test_an_alias_is_the_setting_itself() -> None:
    extra = {
        "max.in.flight": 1,
        "request.required.acks": -1,
        "message.send.max.retries": 0,
        "queue.buffering.max.ms": 9,
    }
    settings = ProducerSettings(extra=extra)
    assert settings.extra == {
        "max.in.flight.requests.per.connection": 1, "acks": -1, "retries": 0, "linger.ms": 9,
    }  # fmt: skip
    assert promised(Mode.AT_LEAST_ONCE, settings) == {
        "idempotent": False, "retries": False, "in_flight": 1, "acks": "all",
    }  # fmt: skip
    assert ConsumerSettings(extra={"max.partition.fetch.bytes": 5}).extra == {"fetch.message.max.bytes": 5}


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_both_names_are_known_to_the_client_and_mean_the_same(alias: str) -> None:
    """For an invalid value the library reports the same error for both names."""
    value = {"metadata.broker.list": "h:1", "bootstrap.servers": "h:1"}.get(
        alias, "PLAIN" if "sasl" in alias else "none"
    )
    said = []
    for name in (alias, ALIASES[alias]):
        try:
            Producer(
                {name: value if "codec" in alias or "sasl" in alias or "list" in alias else 5, "log_level": 0}
            )
            said.append("taken")
        except KafkaException as error:
            said.append(str(error).replace(name, "NAME"))
    assert said[0] == said[1]
    assert "No such configuration" not in said[0]


@pytest.mark.parametrize(
    ("mode", "extra", "event"),
    [
        (Mode.AT_MOST_ONCE, {}, (False, False, None, "0")),
        (Mode.AT_LEAST_ONCE, {"enable.idempotence": "false"}, (False, True, None, "all")),
        (Mode.AT_LEAST_ONCE, {"enable.idempotence": "true", "acks": "ALL"}, (True, True, None, "all")),
        (Mode.IDEMPOTENT, {"max.in.flight.requests.per.connection": "3"}, (True, True, 3, "all")),
        (Mode.EXACTLY_ONCE, {"retries": "7"}, (True, True, None, "all")),
        (Mode.AT_MOST_ONCE, {"acks": 1, "retries": 2}, (False, True, None, "1")),
    ],
)
def test_values_are_read_as_the_client_reads_them(
    mode: Mode, extra: dict[str, Any], event: tuple[bool, bool, int | None, str]
) -> None:
    assert tuple(promised(mode, ProducerOptions(extra=extra)).values()) == event


def test_one_setting_with_two_values_is_a_one_line_error() -> None:
    with pytest.raises(
        ValueError, match=r"acks=all and request\.required\.acks=1 are one setting; give it once"
    ):
        ProducerSettings(extra={"acks": "all", "request.required.acks": "1"})
    assert canonical({"acks": "1", "request.required.acks": 1}, "x") == {"acks": 1}
    with pytest.raises(ValueError, match=r"enable\.idempotence=perhaps: use true or false"):
        ProducerSettings(extra={"enable.idempotence": "perhaps"})


def test_the_client_gets_one_of_the_names() -> None:
    made = producer_settings(
        ProducerSpec(
            "h:1", "t", Mode.AT_LEAST_ONCE, options=ProducerOptions(extra={"request.required.acks": "0"})
        )
    )
    assert made["acks"] == "0"
    assert "request.required.acks" not in made
    spec = ConsumerSpec(
        "h:1",
        "t",
        1,
        Mode.AT_LEAST_ONCE,
        "read_committed",
        options=ConsumerOptions(extra={"max.partition.fetch.bytes": 9}),
    )
    assert consumer_settings(spec)["fetch.message.max.bytes"] == 9


BOTH_WAYS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"acks": 0}, {"acks": "0"}),
    ({"acks": "all"}, {"request.required.acks": -1}),
    ({"in_flight": 1}, {"max.in.flight": "1"}),
    ({"in_flight": 3}, {"max.in.flight.requests.per.connection": 3}),
    ({"retries": 0}, {"message.send.max.retries": 0}),
    ({"retries": 5}, {"retries": "5"}),
    ({"idempotent": True}, {"enable.idempotence": "true"}),
    ({"idempotent": False}, {"enable.idempotence": False}),
]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(("options", "extra"), BOTH_WAYS)
def test_an_option_promises_what_the_setting_promises(
    mode: Mode, options: dict[str, Any], extra: dict[str, Any]
) -> None:
    assert promised(mode, ProducerSettings(**options)) == promised(mode, ProducerSettings(extra=extra))


@pytest.mark.parametrize(("options", "extra"), BOTH_WAYS)
def test_extra_wins_over_an_option(options: dict[str, Any], extra: dict[str, Any]) -> None:
    other: dict[str, Any] = {
        "acks": "1",
        "in_flight": 9,
        "retries": 9,
        "idempotent": not options.get("idempotent"),
    }
    both = ProducerOptions(**{name: other[name] for name in options}, extra=extra)
    assert promised(Mode.IDEMPOTENT, both) == promised(Mode.IDEMPOTENT, ProducerOptions(extra=extra))
    assert named(both) == named(ProducerOptions(extra=extra))


def test_every_option_has_a_setting_that_the_client_takes() -> None:
    producer = ProducerOptions(
        acks="all", retries=3, in_flight=2, idempotent=True, linger_ms=5, batch_bytes=70_000, compression="lz4",
        partitioner="crc32", delivery_timeout_ms=8000, request_timeout_ms=2000, transaction_timeout_ms=8000,
    )  # fmt: skip
    made = producer_settings(ProducerSpec("h:1", "t", Mode.AT_LEAST_ONCE, "id", producer))
    assert len(given(producer)) == len(fields(ProducerOptions)) - 1, "each option but extra is tried"
    assert {NAMES[name]: made[NAMES[name]] for name in given(producer)} == {
        "acks": "all", "retries": 3, "max.in.flight.requests.per.connection": 2, "enable.idempotence": True,
        "linger.ms": 5, "batch.size": 70_000, "compression.type": "lz4", "partitioner": "consistent_random",
        "message.timeout.ms": 8000, "socket.timeout.ms": 2000, "transaction.timeout.ms": 8000,
    }  # fmt: skip
    Producer(made)
    consumer = ConsumerOptions(
        session_timeout_ms=7000, poll_interval_ms=7000, assignor="cooperative-sticky", group_protocol="classic",
        reset="none", store_when_given=True,
    )  # fmt: skip
    assert len(given(consumer)) == len(fields(ConsumerOptions)) - 1, "each option but extra is tried"
    spec = ConsumerSpec(
        "h:1",
        "t",
        1,
        Mode.AT_LEAST_ONCE,
        "read_committed",
        "g",
        auto_commit=True,
        instance_id="c-1",
        options=consumer,
    )
    settings = consumer_settings(spec)
    assert {NAMES[name]: settings[NAMES[name]] for name in given(consumer)} == {
        "session.timeout.ms": 7000, "max.poll.interval.ms": 7000, "auto.offset.reset": "error",
        "partition.assignment.strategy": "cooperative-sticky", "group.protocol": "classic",
        "enable.auto.offset.store": True,
    }  # fmt: skip
    assert settings["group.instance.id"] == "c-1"
    Consumer(settings).close()


def test_the_consumer_protocol_has_its_timeouts_on_the_brokers_whichever_way_it_is_chosen() -> None:
    plain = ConsumerSpec("h:1", "t", 1, Mode.AT_LEAST_ONCE, "read_committed", "g")
    for options in (
        ConsumerOptions(group_protocol="consumer"),
        ConsumerOptions(extra={"group.protocol": "consumer"}),
    ):
        made = consumer_settings(replace(plain, options=options))
        assert made["group.protocol"] == "consumer"
        assert not {"session.timeout.ms", "heartbeat.interval.ms"} & made.keys()
    with pytest.raises(
        ValueError, match=r"ConsumerSettings\.session_timeout_ms: .* group\.consumer\.session"
    ):
        ConsumerSettings(group_protocol="consumer", session_timeout_ms=6000)


def test_a_value_that_the_library_does_not_have_is_a_one_line_error() -> None:
    with pytest.raises(
        UsageError, match="assignor=sticky: librdkafka does not have it; choose one of range, "
    ):
        Confluent.check_options(ConsumerSettings(assignor="sticky"))
    Confluent.check_options(
        ConsumerSettings(assignor="sticky", extra={}).updated(ConsumerOptions(assignor="range"))
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ProducerSettings(acks="some"), "ProducerSettings.acks: one of 0, 1, all; not 'some'"),
        (
            lambda: ProducerSettings(retries=-1),
            "ProducerSettings.retries: a whole number of 0 or more, not -1",
        ),
        (lambda: ProducerSettings(linger_ms=True), "ProducerSettings.linger_ms: a whole number"),
        (lambda: ProducerSettings(idempotent=1), "ProducerSettings.idempotent: one of True, False; not 1"),  # type: ignore[arg-type]
        (lambda: ProducerOptions(compression="zip"), "ProducerOptions.compression: one of none, gzip"),
        (lambda: ConsumerSettings(reset="never"), "ConsumerSettings.reset: one of earliest, latest, none"),
        (lambda: PipelineSettings(producer=ProducerOptions(extra={"retries": "x"})), "invalid literal"),
    ],
)
def test_a_wrong_option_is_named(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_what_is_set_is_found_whichever_way_it_was_set() -> None:
    for settings in (
        ProducerSettings(transaction_timeout_ms=5000),
        ProducerSettings(extra={"transaction.timeout.ms": 5000}),
    ):
        assert effective(settings) == {"transaction_timeout_ms": 5000}
        scenario = Scenario(
            name="x", mode=Mode.EXACTLY_ONCE, workload="transactional_produce", producers=settings
        )
        assert {one.give_up_s for one in TransactionalProduce(scenario, "t", "g").producers()} == {17.0}


def test_options_of_a_pipeline_are_added_to_those_of_the_readers() -> None:
    scenario = Scenario(
        name="x", mode=Mode.EXACTLY_ONCE, workload="transactional_copy",
        consumers=ConsumerSettings(session_timeout_ms=6000, reset="latest", extra={"fetch.min.bytes": 1}),
        pipeline=PipelineSettings(
            producer=ProducerOptions(request_timeout_ms=3000),
            consumer=ConsumerOptions(reset="earliest", extra={"fetch.max.bytes": 2}),
        ),
    )  # fmt: skip
    copier = next(
        one for one in TransactionalCopy(scenario, "t", "g").roles() if isinstance(one, CopierRoleSpec)
    )
    assert named(copier.producer) == {"socket.timeout.ms": 3000}
    assert named(copier.consumer) == {
        "session.timeout.ms": 6000, "auto.offset.reset": "earliest", "fetch.min.bytes": 1, "fetch.max.bytes": 2,
    }  # fmt: skip
