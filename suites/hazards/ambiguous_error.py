"""Answers are lost until the producer gives the records up: it reports errors for records that are in the log, once each."""

from __future__ import annotations

from faults.sever import Sever
from harness.contracts import Mode
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import every_broker
from suites.scenarios.hazards import Hazard, Kind

# The producer gives up long before the answers pass again, and does not retry by itself, so there are no copies.
hazard = Hazard(
    title="An error for a record that was written",
    kind=Kind.FALSE_ALARMS,
    at_risk="every producer: after a timeout or a lost connection it cannot know whether the record was written",
    cure="Treat a timed-out record as unknown, not as lost; a second send by the application needs an id that readers check.",
    sources=("KIP-98",),
    safe=Scenario(
        name="safe-ambiguous_error",
        mode=Mode.AT_LEAST_ONCE,
        hazard="ambiguous_error",
        producers=ProducerSettings(retries=0, delivery_timeout_ms=1000, extra={"request.timeout.ms": 1000}),
        schedule=once(Sever(shape="answers"), on=every_broker(), after_s=0.5, hold_s=3.0),
    ),
)
