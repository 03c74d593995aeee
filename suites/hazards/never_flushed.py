"""A producer ends without a flush: the records in its queue were never sent. They were never acked, so they are not lost."""

from __future__ import annotations

from faults.kill_worker import KillWorker
from harness.contracts import Mode
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import producer
from suites.scenarios.hazards import Hazard, Kind

# Records wait in the queue of the library for up to a second, so hundreds are there when the process ends.
hazard = Hazard(
    title="A producer that ends with records in its queue",
    kind=Kind.FALSE_ALARMS,
    at_risk="applications that exit without flush, or that do not check the outcomes of their records",
    cure="Call flush before the end, check that it returns 0, and treat a record as written only when its ack was received.",
    sources=("librdkafka: INTRODUCTION.md",),
    safe=Scenario(
        name="safe-never_flushed",
        mode=Mode.IDEMPOTENT,
        hazard="never_flushed",
        producers=ProducerSettings(linger_ms=1000),
        schedule=once(KillWorker(), on=producer(1), after_s=0.5, hold_s=1.0),
    ),
)
