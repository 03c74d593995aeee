"""A member of a share group dies after its work and before it accepts: another member gets the same records, as promised."""

from __future__ import annotations

from dataclasses import replace

from faults.at_moment import AtMoment
from faults.kill_worker import KillWorker
from harness.contracts import Verdict
from harness.targets import consumer
from harness.workers.breakpoints import Moment
from suites.hazards import share_accepted_first
from suites.scenarios.hazards import Hazard, Kind
from suites.scenarios.pipelines import held

hazard = Hazard(
    title="A share group gives records out again, and out of order",
    kind=Kind.FALSE_ALARMS,
    at_risk="applications that expect each record once, or in order, from a share group",
    cure="Make the work safe to repeat; use a consumer group where the order of a key matters.",
    sources=("KIP-932",),
    needs=share_accepted_first.NEEDS,
    safe=replace(
        share_accepted_first.SAFE,
        name="safe-share_redelivery",
        hazard="share_redelivery",
        expected=Verdict.HELD,
        requires={"redelivered": 1},
        schedule=held(AtMoment(KillWorker().describe(), Moment.AFTER_WORK.value, "consumer-1"), consumer(1)),
    ),
)
