"""A producer dies with an open transaction: readers with read_committed wait until the coordinator aborts it; nothing is lost."""

from __future__ import annotations

from harness.contracts import Mode
from harness.scenario import Scenario, Timings
from harness.targets import producer
from harness.workers.breakpoints import Moment
from harness.workloads.transactional_produce import COORDINATOR_LOOKS_EVERY_S
from suites.scenarios.hazards import Hazard, Kind
from suites.scenarios.pipelines import IMPATIENT, IMPATIENT_S, at, held

# It is restarted only after the coordinator has aborted its transaction. Until then the other producer's records are in the
# log, and readers with read_committed do not get them.
hazard = Hazard(
    title="A producer that dies with an open transaction delays everything behind it",
    kind=Kind.FALSE_ALARMS,
    at_risk="readers with read_committed: they wait up to transaction.timeout.ms, plus 10 s until the coordinator looks",
    cure="Set transaction.timeout.ms to the longest delay that readers can bear; a restart with the same id ends it at once.",
    sources=("KIP-98",),
    safe=Scenario(
        name="safe-open_transaction",
        mode=Mode.EXACTLY_ONCE,
        hazard="open_transaction",
        workload="transactional_produce",
        observed=True,
        producers=IMPATIENT,
        schedule=held(
            at(Moment.AFTER_PRODUCE, worker="producer-1"),
            producer(1),
            IMPATIENT_S + COORDINATOR_LOOKS_EVERY_S + 2.0,
        ),
        timings=Timings(recovery_limit_s=90.0),
    ),
)
