"""Most controllers are gone: records are written and read as before, while no leader could be elected."""

from __future__ import annotations

from faults.kill import Kill
from harness.contracts import Mode
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import other_controllers
from suites.scenarios.hazards import Hazard, Kind

hazard = Hazard(
    title="A controller quorum that is lost",
    kind=Kind.FALSE_ALARMS,
    at_risk="topics whose leader fails at the same time: they wait for the quorum",
    cure="Nothing has to be done for delivery; run three controllers or more in separate failure domains.",
    sources=("KIP-500", "KIP-595"),
    safe=Scenario(
        name="safe-controller_quorum_lost",
        mode=Mode.IDEMPOTENT,
        hazard="controller_quorum_lost",
        schedule=once(Kill(), on=other_controllers(), after_s=0.5, hold_s=6.0),
    ),
)
