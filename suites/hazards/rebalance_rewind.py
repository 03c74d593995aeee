"""A member is thrown out with work that it has not committed, and gets its partitions back: it goes back to the last commit."""

from __future__ import annotations

from faults.stall_worker import StallWorker
from harness.contracts import Mode
from harness.scenario import ConsumerSettings, Scenario
from harness.schedule import once
from harness.targets import consumer
from harness.workers.breakpoints import Moment
from suites.scenarios.hazards import Hazard, Kind

INTERVAL_S = 6.0
SAFE = Scenario(
    name="safe-rebalance_rewind",
    mode=Mode.AT_LEAST_ONCE,
    requires={"rewound": 1, "redelivered": 1},
    hazard="rebalance_rewind",
    schedule=once(
        StallWorker(moment=Moment.AFTER_WORK.value), on=consumer(1), after_s=0.5, hold_s=2 * INTERVAL_S
    ),
    consumers=ConsumerSettings(members=1, session_timeout_ms=6000, poll_interval_ms=int(INTERVAL_S * 1000)),
)
hazard = Hazard(
    title="A reader goes back to the last commit after a rebalance",
    kind=Kind.FALSE_ALARMS,
    at_risk="a checker that expects the offsets of a reader only to grow",
    cure="Compare the offsets of a reader only between two rebalances: after one, reading resumes from the last commit.",
    sources=("KIP-62",),
    safe=SAFE,
)
