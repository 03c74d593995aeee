"""Transactions of three producers write the same keys into the same partitions, one inside the other, while leaders change."""

from __future__ import annotations

from faults.kill import Kill
from harness.contracts import Mode
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios.hazards import Hazard, Kind

SAFE = Scenario(
    name="safe-same_keys",
    mode=Mode.EXACTLY_ONCE,
    hazard="same_keys",
    schedule=once(Kill(), on=leader_of(0), after_s=0.5, hold_s=1.0),
    producers=ProducerSettings(keyed=3, keyless=0, keys=8),
)
hazard = Hazard(
    title="Several producers write the same keys at once",
    kind=Kind.FALSE_ALARMS,
    at_risk="a checker that takes a key for the identity of a record, or expects its records to be in one block",
    cure="Identify a record by its producer and number, not by its key.",
    sources=("KIP-98",),
    safe=SAFE,
)
