"""Answers are lost for three times as long as the client waits for one, so it sends records again that are already written."""

from __future__ import annotations

from faults.sever import Sever
from harness.contracts import Mode, Verdict
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import every_broker
from suites.scenarios.hazards import Hazard, safe_way

CONTROL = Scenario(
    name="control-retry_duplicates",
    mode=Mode.AT_LEAST_ONCE,
    judged_as=Mode.EXACTLY_ONCE,
    expected=Verdict.VIOLATED,
    requires={"duplicated": 1},
    tolerates=("reordered", "key_reordered"),  # a copy may be written behind later records
    control=True,
    hazard="retry_duplicates",
    schedule=once(Sever(shape="answers"), on=every_broker(), after_s=0.5, hold_s=3.0),
    producers=ProducerSettings(request_timeout_ms=1000, extra={"request.timeout.ms": 1000}),
)
hazard = Hazard(
    place_in_prove=3,
    control=CONTROL,
    safe=safe_way(CONTROL, "idempotent_retry", mode=Mode.IDEMPOTENT, judged_as=None),
)
