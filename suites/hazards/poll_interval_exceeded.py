"""A member works on one batch for longer than max.poll.interval.ms: it is out of the group, and finishes the batch all the same.

Its commit is refused, and the next owner, here the same member after it has joined again, does the work a second time.
"""

from __future__ import annotations

from faults.stall_worker import StallWorker
from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings, Scenario
from harness.schedule import once
from harness.targets import consumer
from suites.scenarios.hazards import Hazard, Kind, safe_way

INTERVAL_S = 6.0

UNSAFE = Scenario(
    name="control-poll_interval_exceeded",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"redelivered": 1},
    # At-least-once allows it; this application cannot do its work twice. One member: no other rebalance repeats a delivery.
    forbids=("redelivered",),
    control=True,
    hazard="poll_interval_exceeded",
    schedule=once(StallWorker(), on=consumer(1), after_s=0.5, hold_s=2 * INTERVAL_S),
    consumers=ConsumerSettings(members=1, session_timeout_ms=6000, poll_interval_ms=int(INTERVAL_S * 1000)),
)
hazard = Hazard(
    title="A member works for longer than max.poll.interval.ms",
    kind=Kind.CONSUMERS,
    at_risk="consumers whose work on one poll may last longer than max.poll.interval.ms (five minutes by default)",
    cure="Set max.poll.interval.ms above the longest time that the records of one poll take, or poll fewer records at once.",
    sources=("KIP-62",),
    unsafe=UNSAFE,
    safe=safe_way(
        UNSAFE,
        consumers=ConsumerSettings(members=1, session_timeout_ms=6000, poll_interval_ms=300_000),
    ),
)
