"""Answers are lost until an idempotent producer gives the records up: errors for records that are in the log, once each."""

from __future__ import annotations

from dataclasses import replace

from harness.contracts import Mode
from harness.scenario import ProducerSettings
from suites.hazards import ambiguous_error
from suites.scenarios.hazards import Hazard, Kind

assert ambiguous_error.hazard.safe is not None
# The library sends each record again until it gives up, and the brokers recognise the copies.
hazard = Hazard(
    title="An error for a record that an idempotent producer has written",
    kind=Kind.FALSE_ALARMS,
    at_risk="every idempotent producer: idempotence avoids copies, and does not report what became of a record",
    cure="Treat a timed-out record as unknown; an idempotent producer has to be replaced or to raise its epoch after it.",
    sources=("KIP-98", "KIP-360"),
    safe=replace(
        ambiguous_error.hazard.safe,
        name="safe-ambiguous_error_idempotent",
        hazard="ambiguous_error_idempotent",
        mode=Mode.IDEMPOTENT,
        producers=ProducerSettings(
            delivery_timeout_ms=2000, request_timeout_ms=500, extra={"request.timeout.ms": 500}
        ),
    ),
)
