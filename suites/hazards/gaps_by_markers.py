"""Offsets are missing where transactions end and where they were aborted: readers jump over them and miss nothing."""

from __future__ import annotations

from harness.contracts import Mode
from harness.scenario import ProducerSettings, Scenario
from suites.scenarios.hazards import Hazard, Kind

# Two records in a transaction and a marker behind them: every third offset is a marker, and half of the records are aborted.
hazard = Hazard(
    title="Gaps in the offsets by markers and aborted records",
    kind=Kind.FALSE_ALARMS,
    quick=True,
    at_risk="readers and monitoring that expect offset + 1, or take a difference of offsets for a number of records",
    cure="Compare offsets only by their order; count records, not offsets.",
    sources=("KIP-98",),
    safe=Scenario(
        name="safe-gaps_by_markers",
        mode=Mode.EXACTLY_ONCE,
        hazard="gaps_by_markers",
        observed=True,
        producers=ProducerSettings(records_per_s=40, records_per_transaction=2, aborted_share=0.5),
    ),
)
