"""Records that were refused for a moment are sent again behind later records, which were on their way and were accepted."""

from __future__ import annotations

from faults.raise_min_isr import RaiseMinIsr
from faults.restart import Restart
from faults.slow_link import SlowLink
from harness.contracts import Direction, Mode, Verdict
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import together
from harness.targets import every_broker, follower_of, leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

# A broker is stopped, so two of three replicas are in sync. Answers to producers take 4 s. Meanwhile records are refused
# (NOT_ENOUGH_REPLICAS) for less than that, and later ones, which the producer sends without knowing it, are accepted again.
# Then the refusals arrive. A batch each second: with five requests in flight, as idempotence has them, the producer
# does not have to wait for answers.
_SLOW_ANSWERS = SlowLink(latency_ms=4000, lanes="producers", direction=Direction.ANSWERS)
_PATIENT = ProducerSettings(
    records_per_s=500,
    linger_ms=1000,
    request_timeout_ms=30_000,
    delivery_timeout_ms=60_000,
    extra={"request.timeout.ms": 30_000},
)
UNSAFE = Scenario(
    name="control-retry_reorder",
    mode=Mode.AT_LEAST_ONCE,
    judged_as=Mode.IDEMPOTENT,
    expected=Verdict.VIOLATED,
    requires={"reordered": 1},
    tolerates=("key_reordered",),
    control=True,
    hazard="retry_reorder",
    schedule=together(
        (Restart(), follower_of(0)),
        (_SLOW_ANSWERS, every_broker()),
        (RaiseMinIsr(), leader_of(0)),
        after_s=0.5,
        hold_s=1.3,
    ),
    producers=_PATIENT,
)
hazard = Hazard(
    title="Retries that come behind later records",
    kind=Kind.PRODUCER_RETRIES,
    at_risk="producers without idempotence that retry with more than one request in flight: librdkafka's default",
    cure="Set enable.idempotence=true, or max.in.flight.requests.per.connection=1.",
    sources=("KIP-98", "KIP-679"),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, mode=Mode.IDEMPOTENT, judged_as=None),
)
