"""The wall clocks of all brokers go back by an hour: records get earlier times, and nothing is lost or hidden."""

from __future__ import annotations

from faults.skew_clock import SkewClock
from harness.contracts import Mode
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import every_broker
from suites.scenarios.hazards import DISKS_AND_CLOCKS, Hazard, Kind

hazard = Hazard(
    title="Broker clocks that go back by an hour",
    kind=Kind.FALSE_ALARMS,
    at_risk="no client; times in records and logs are wrong",
    cure="Nothing has to be done for delivery; keep clocks in step for retention by time and for reading by time.",
    sources=("KIP-32",),
    needs=DISKS_AND_CLOCKS,
    safe=Scenario(
        name="safe-clock_back",
        mode=Mode.EXACTLY_ONCE,
        hazard="clock_back",
        schedule=once(SkewClock(offset_s=-3600.0), on=every_broker(), after_s=0.5, hold_s=4.0),
    ),
)
