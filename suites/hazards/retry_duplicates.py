"""Answers are lost for three times as long as the client waits for one, so it sends records again that are already written."""

from __future__ import annotations

from faults.sever import Sever
from harness.contracts import Mode, Verdict
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import every_broker
from suites.scenarios.hazards import Hazard, Kind, safe_way

UNSAFE = Scenario(
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
    title="Lost answers make a producer without idempotence send records twice",
    kind=Kind.PRODUCER_RETRIES,
    at_risk="producers without idempotence that retry: librdkafka's default, and Java clients before 3.0",
    cure="Set enable.idempotence=true.",
    sources=("KIP-98", "KIP-679"),
    quick=True,
    place_in_prove=3,
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, mode=Mode.IDEMPOTENT, judged_as=None),
)
