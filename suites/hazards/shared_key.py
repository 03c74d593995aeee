"""Two clients send records with the same keys, and one stops with records in its queue: they are written behind later ones.

That is no broken promise: the order of a key is the order of the log, and two sends are in order only if the first was acked
before the second began. Here the stopped producer has created its records, and none of them has been acked.
"""

from __future__ import annotations

from faults.pause_worker import PauseWorker
from harness.contracts import Mode
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import producer
from suites.scenarios.hazards import Hazard, Kind

SAFE = Scenario(
    name="safe-shared_key",
    mode=Mode.IDEMPOTENT,
    hazard="shared_key",
    schedule=once(PauseWorker(), on=producer(1), after_s=0.5, hold_s=1.0),
    # A long linger: there are always records in the queue.
    producers=ProducerSettings(keyed=2, keyless=0, keys=4, linger_ms=100),
)
hazard = Hazard(
    title="Two clients share keys, and the records of one arrive late",
    kind=Kind.FALSE_ALARMS,
    at_risk="a checker that orders records of different senders by the time at which they were created",
    cure="Give each key one sender if the order of its records matters: Kafka orders the records of one producer.",
    sources=("KIP-98",),
    safe=SAFE,
)
