"""Two applications use one transactional id: each new producer fences the other one, whose open transaction is aborted."""

from __future__ import annotations

from dataclasses import replace

from suites.scenarios.hazards import Hazard, Kind
from suites.scenarios.pipelines import RIVALS

hazard = Hazard(
    title="Two applications that use one transactional id",
    kind=Kind.FALSE_ALARMS,
    at_risk="transactional ids that are copied with a configuration, or the same in each instance of an application",
    cure="Give each instance an id of its own that it keeps over restarts, and allow prefixes of ids by ACLs.",
    sources=("KIP-98", "KIP-360"),
    safe=replace(RIVALS, name="safe-hijacked_transactional_id", hazard="hijacked_transactional_id"),
)
