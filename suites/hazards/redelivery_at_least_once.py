"""A member dies between its work and its commit: the next owner does the work again. At-least-once allows that."""

from __future__ import annotations

from faults.at_moment import AtMoment
from faults.kill_worker import KillWorker
from harness.contracts import Mode
from harness.scenario import ConsumerSettings, Scenario
from harness.schedule import once
from harness.targets import consumer
from harness.workers.breakpoints import Moment
from suites.scenarios.hazards import Hazard, Kind

SAFE = Scenario(
    name="safe-redelivery_at_least_once",
    mode=Mode.AT_LEAST_ONCE,
    requires={"redelivered": 1},
    hazard="redelivery_at_least_once",
    schedule=once(
        AtMoment(KillWorker().describe(), moment=Moment.AFTER_WORK.value, worker="consumer-1"),
        on=consumer(1),
        after_s=0.5,
        hold_s=1.0,
    ),
    consumers=ConsumerSettings(members=1, session_timeout_ms=6000),
)
hazard = Hazard(
    title="A member dies before its commit, and its records are delivered again",
    kind=Kind.FALSE_ALARMS,
    at_risk="a checker that calls every repeated delivery a duplicate",
    cure="Make the work idempotent, or commit offsets together with its results; at-least-once repeats deliveries by design.",
    sources=("https://kafka.apache.org/documentation/#semantics",),
    safe=SAFE,
)
