"""Names of librdkafka's settings: several settings have two names, of which the harness uses one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.contracts import Mode

ACKS, IN_FLIGHT, RETRIES, IDEMPOTENCE = (
    "acks",
    "max.in.flight.requests.per.connection",
    "retries",
    "enable.idempotence",
)
# librdkafka's CONFIGURATION.md says "Alias for …" in one direction or the other; here the names of Java clients win.
ALIASES: Mapping[str, str] = {
    "request.required.acks": ACKS,
    "max.in.flight": IN_FLIGHT,
    "message.send.max.retries": RETRIES,
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


def promised(mode: Mode, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a producer session with these settings, for its event: idempotent, retries, in_flight, acks.

    `extra` takes precedence over the mode, as in the client, and its values may be strings.
    """
    acks = str(extra.get(ACKS, "0" if mode is Mode.AT_MOST_ONCE else "all")).lower()
    in_flight = extra.get(IN_FLIGHT)
    return {
        "idempotent": _truth(extra.get(IDEMPOTENCE, mode in (Mode.IDEMPOTENT, Mode.EXACTLY_ONCE))),
        "retries": int(extra[RETRIES]) > 0 if RETRIES in extra else mode is not Mode.AT_MOST_ONCE,
        "in_flight": None if in_flight is None else int(in_flight),
        "acks": "all" if acks == "-1" else acks,
    }


def _truth(value: Any) -> bool:
    text = str(value).lower()
    if text not in (*_YES, *_NO):
        raise ValueError(f"{IDEMPOTENCE}={value}: use true or false")
    return text in _YES
