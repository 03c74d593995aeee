"""Settings of librdkafka by any of their names: the recorded properties of a session are those of the client."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from harness.clients.librdkafka.translation import consumer_settings, producer_settings
from harness.contracts import ConsumerSpec, Mode, ProducerSpec
from harness.kafka.client_settings import ALIASES, canonical, promised
from harness.scenario import ConsumerSettings, ProducerSettings


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
    assert promised(Mode.AT_LEAST_ONCE, settings.extra) == {
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
    assert tuple(promised(mode, extra).values()) == event


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
        ProducerSpec("h:1", "t", Mode.AT_LEAST_ONCE, extra={"request.required.acks": "0"})
    )
    assert made["acks"] == "0"
    assert "request.required.acks" not in made
    spec = ConsumerSpec(
        "h:1", "t", 1, Mode.AT_LEAST_ONCE, "read_committed", extra={"max.partition.fetch.bytes": 9}
    )
    assert consumer_settings(spec)["fetch.message.max.bytes"] == 9
