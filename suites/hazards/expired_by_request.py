"""An operator deletes records that the group has read: they are gone from the log, and none of them is lost."""

from __future__ import annotations

from faults.delete_records import DeleteRecords
from harness.contracts import Mode
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import Hazard, Kind

SAFE = Scenario(
    name="safe-expired_by_request",
    mode=Mode.IDEMPOTENT,
    requires={"expired": 1},
    hazard="expired_by_request",
    schedule=once(DeleteRecords(), on=leader_of(0), after_s=1.0, hold_s=1.0),
)
hazard = Hazard(
    title="Acked records are deleted on request",
    kind=Kind.FALSE_ALARMS,
    at_risk="a checker that calls every acked record lost that is not in the log",
    cure="Compare the offset of a missing record with the start of the log: below it the record was deleted, not lost.",
    sources=("KIP-107",),
    safe=SAFE,
)
