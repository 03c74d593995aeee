"""Settings of librdkafka: the names and values that options of clients have there, and one name for settings that have two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.contracts import ConsumerOptions, Mode, ProducerOptions, given
from harness.errors import UsageError

IDEMPOTENCE = "enable.idempotence"
NAMES: Mapping[str, str] = {  # by option; harness.contracts.client has their meaning
    "acks": "acks",
    "retries": "retries",
    "in_flight": "max.in.flight.requests.per.connection",
    "idempotent": IDEMPOTENCE,
    "linger_ms": "linger.ms",
    "batch_bytes": "batch.size",
    "compression": "compression.type",
    "partitioner": "partitioner",
    "delivery_timeout_ms": "message.timeout.ms",
    "request_timeout_ms": "socket.timeout.ms",  # request.timeout.ms is how long the broker waits for replicas
    "transaction_timeout_ms": "transaction.timeout.ms",
    "session_timeout_ms": "session.timeout.ms",
    "poll_interval_ms": "max.poll.interval.ms",
    "assignor": "partition.assignment.strategy",
    "group_protocol": "group.protocol",
    "reset": "auto.offset.reset",
    "store_when_given": "enable.auto.offset.store",
}
VALUES: Mapping[
    str, Mapping[str, str]
] = {  # of options whose values have other names there, or are not all there
    "partitioner": {
        "murmur2": "murmur2_random",
        "crc32": "consistent_random",
        "fnv1a": "fnv1a_random",
        "random": "random",
    },
    "assignor": {"range": "range", "roundrobin": "roundrobin", "cooperative-sticky": "cooperative-sticky"},
    "reset": {"earliest": "earliest", "latest": "latest", "none": "error"},
}
# librdkafka's CONFIGURATION.md says "Alias for …" in one direction or the other; here the names of Java clients win.
ALIASES: Mapping[str, str] = {
    "request.required.acks": "acks",
    "max.in.flight": NAMES["in_flight"],
    "message.send.max.retries": "retries",
    "queue.buffering.max.ms": "linger.ms",
    "delivery.timeout.ms": "message.timeout.ms",
    "compression.codec": "compression.type",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
}
_YES, _NO = ("true", "t", "1"), ("false", "f", "0")


def canonical(settings: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the settings by the names that the harness uses. Raises ValueError, which names `place`, for contradictions."""
    found: dict[str, Any] = {}
    given: dict[str, str] = {}
    for name, value in settings.items():
        known = ALIASES.get(name, name)
        if known in found and str(found[known]) != str(value):
            raise ValueError(
                f"{place}: {given[known]}={found[known]} and {name}={value} are one setting; give it once"
            )
        found[known], given[known] = value, name
    return found


def named(options: ProducerOptions | ConsumerOptions) -> dict[str, Any]:
    """Return the options as settings of librdkafka; `extra` wins. Raises UsageError for a value that it does not have."""
    made: dict[str, Any] = {}
    for option, value in given(options).items():
        known = VALUES.get(option)
        if known is not None and value not in known:
            raise UsageError(
                f"{option}={value}: librdkafka does not have it; choose one of {', '.join(known)}"
            )
        made[NAMES[option]] = value if known is None else known[value]
    return made | canonical(options.extra, "extra")


def effective(options: ProducerOptions | ConsumerOptions) -> dict[str, Any]:
    """Return what is set, by the names of options, whether it was set by an option or in `extra`, which wins.

    Values of `extra` are as the user gave them, and may be strings.
    """
    said = canonical(options.extra, "extra")
    return given(options) | {option: said[name] for option, name in NAMES.items() if name in said}


def promised(mode: Mode, options: ProducerOptions) -> dict[str, Any]:
    """Return the properties of a producer session with these options, for its event: idempotent, retries, in_flight, acks."""
    found = effective(options)
    acks = str(found.get("acks", "0" if mode is Mode.AT_MOST_ONCE else "all")).lower()
    in_flight = found.get("in_flight")
    return {
        "idempotent": _truth(found.get("idempotent", mode in (Mode.IDEMPOTENT, Mode.EXACTLY_ONCE))),
        "retries": int(found["retries"]) > 0 if "retries" in found else mode is not Mode.AT_MOST_ONCE,
        "in_flight": None if in_flight is None else int(in_flight),
        "acks": "all" if acks == "-1" else acks,
    }


def _truth(value: Any) -> bool:
    text = str(value).lower()
    if text not in (*_YES, *_NO):
        raise ValueError(f"{IDEMPOTENCE}={value}: use true or false")
    return text in _YES
