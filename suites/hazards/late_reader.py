"""A member joins a group that has read for long: it begins in the middle of the log, and its group has read what came before."""

from __future__ import annotations

from faults.kill_worker import KillWorker
from harness.contracts import Mode
from harness.scenario import ConsumerSettings, Scenario
from harness.schedule import once
from harness.targets import consumer
from suites.scenarios.hazards import Hazard, Kind

SESSION_S = 6.0
SAFE = Scenario(
    name="safe-late_reader",
    mode=Mode.AT_LEAST_ONCE,
    hazard="late_reader",
    # It is away for longer than its session: the group goes on without it, and a new member joins later.
    schedule=once(KillWorker(), on=consumer(2), after_s=0.5, hold_s=SESSION_S + 2.0),
    consumers=ConsumerSettings(session_timeout_ms=int(SESSION_S * 1000)),
)
hazard = Hazard(
    title="A reader joins late and begins in the middle of the log",
    kind=Kind.FALSE_ALARMS,
    at_risk="a checker that expects each reader to begin with the first record",
    cure="Judge a group as a whole: each record has to be delivered to one of its members.",
    sources=("KIP-134",),
    safe=SAFE,
)
