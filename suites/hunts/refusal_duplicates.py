"""One broker refuses a request and accepts the next one, while the answers of another broker are lost.

The library gets NOT_ENOUGH_REPLICAS for the first request in flight and OUT_OF_ORDER_SEQUENCE_NUMBER for those behind it, and asks
for a new epoch. What it sends to the other broker again then has the new epoch, and is in the log already.
"""

from __future__ import annotations

from dataclasses import replace

from faults.flaky_link import FlakyLink
from faults.raise_min_isr import RaiseMinIsr
from faults.restart import Restart
from faults.slow_link import SlowLink
from harness.contracts import Direction
from harness.hunts.hunt import Hunt
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once, overlapping
from harness.targets import every_broker, follower_of, leader_of
from suites.hunts import _epochs

PARTITIONS = 6
# As in the hazard retry_reorder: answers take 4 s, so five requests are on their way when refusals begin and end.
_SLOW_ANSWERS = SlowLink(latency_ms=4000, lanes="producers", direction=Direction.ANSWERS)
_RESETS = FlakyLink(lanes="producers", direction=Direction.ANSWERS)
SCHEDULE = overlapping(
    once(Restart(), on=follower_of(0), after_s=0.5, hold_s=9.0),
    once(_SLOW_ANSWERS, on=every_broker(), after_s=0.6, hold_s=7.0),
    once(RaiseMinIsr(), on=leader_of(0), after_s=0.7, hold_s=1.3),
    once(_RESETS, on=leader_of(1), after_s=2.2, hold_s=2.0),
)


def scenario(seed: int) -> Scenario:
    producers = ProducerSettings(
        keyed=0, keyless=2, records_per_s=500, linger_ms=700 + 100 * (seed % 4), request_timeout_ms=30_000,
        delivery_timeout_ms=120_000, extra={"request.timeout.ms": 30_000, **_epochs.CLIENT_LOG},
    )  # fmt: skip
    return replace(_epochs.scenario("refusal_duplicates", SCHEDULE, seed, PARTITIONS), producers=producers)


hunt = Hunt(
    title="Does an idempotent librdkafka producer write duplicates when one broker's refusal meets another broker's lost answer?",
    suspicion=_epochs.SUSPICION,
    sources=_epochs.SOURCES,
    scenario=scenario,
    shows=_epochs.SHOWS,
    runs=6,
    not_tried="other errors that a later request survives, other numbers of requests in flight, other releases.",
    log_lines=_epochs.LOG_LINES,
    page=_epochs.PAGE,
)
