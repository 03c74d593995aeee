"""A producer gives records up whose request is on its way, and sends later ones; then the request arrives."""

from __future__ import annotations

from faults.hold_requests import HoldRequests
from harness.contracts import Mode, Verdict
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

# A request is held for four times as long as the producer tries. The records behind the first one are sent again over another connection.
UNSAFE = Scenario(
    name="control-given_up_reorder",
    mode=Mode.AT_LEAST_ONCE,
    judged_as=Mode.IDEMPOTENT,
    expected=Verdict.VIOLATED,
    requires={"reordered": 1},
    tolerates=("duplicated", "key_reordered"),
    control=True,
    hazard="given_up_reorder",
    schedule=once(HoldRequests(("Produce",)), on=leader_of(0), after_s=0.5, hold_s=4.0),
    producers=ProducerSettings(delivery_timeout_ms=1000, extra={"request.timeout.ms": 1000}),
)
hazard = Hazard(
    title="Records that were given up and arrive behind later ones",
    kind=Kind.PRODUCER_RETRIES,
    at_risk="producers without idempotence, also with one request in flight, whose delivery timeout is shorter than a request's way",
    cure="Set enable.idempotence=true: the leader refuses a request of the producer's earlier epoch.",
    sources=("KIP-360", "KAFKA-14402"),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, mode=Mode.IDEMPOTENT, judged_as=None),
)
