"""Another setting switches idempotence off, and the application still relies on it."""

from __future__ import annotations

from dataclasses import replace

from harness.contracts import Mode
from harness.scenario import ProducerSettings
from suites.hazards import retry_duplicates
from suites.scenarios.hazards import Hazard, Kind, safe_way

# librdkafka refuses conflicting settings (acks=1, retries=0, more than five requests in flight) if idempotence was asked for.
# An override of enable.idempotence itself conflicts with nothing.
_ASKED_AGAIN_MS = 1000
_SETTINGS = ProducerSettings(
    request_timeout_ms=_ASKED_AGAIN_MS, extra={"request.timeout.ms": _ASKED_AGAIN_MS}
)
UNSAFE = replace(
    retry_duplicates.UNSAFE,
    name="control-conflicting_settings",
    hazard="conflicting_settings",
    mode=Mode.IDEMPOTENT,
    judged_as=None,
    producers=replace(_SETTINGS, extra={**_SETTINGS.extra, "enable.idempotence": "false"}),
)
hazard = Hazard(
    title="A setting that switches idempotence off",
    kind=Kind.PRODUCER_RETRIES,
    at_risk="Java clients from 3.0 on: acks=1 or retries=0 silently switch the default off; all clients: an override from elsewhere",
    cure="Set enable.idempotence=true explicitly, so that conflicting settings are errors.",
    sources=("KIP-679", "KAFKA-13598"),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, producers=_SETTINGS),
)
