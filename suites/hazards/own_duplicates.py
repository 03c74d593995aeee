"""An application sends records again that may have been written: the same key, in two messages that it gave two ids.

All answers are lost for longer than a record may take, so the library reports a timeout for records that are in the log.
"""

from __future__ import annotations

from faults.sever import Sever
from harness.contracts import Mode
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import every_broker
from suites.scenarios.hazards import Hazard, Kind

SAFE = Scenario(
    name="safe-own_duplicates",
    mode=Mode.IDEMPOTENT,
    hazard="own_duplicates",
    schedule=once(Sever(shape="answers"), on=every_broker(), after_s=0.5, hold_s=4.0),
    producers=ProducerSettings(sends_again=True, delivery_timeout_ms=2000, request_timeout_ms=1000),
)
hazard = Hazard(
    title="The application itself sends a record twice",
    kind=Kind.FALSE_ALARMS,
    at_risk="a checker that compares contents: idempotence covers the retries of the library, not those of the application",
    cure="Leave retries to the library: give delivery.timeout.ms enough time, and do not send a record again.",
    sources=("KIP-98", "KIP-91"),
    safe=SAFE,
)
