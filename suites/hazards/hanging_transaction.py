"""A Produce request arrives after the abort of its transaction and begins one that no client ends: readers wait for ever."""

from __future__ import annotations

from suites.scenarios.hazards import Hazard, Kind, Needs, safe_way
from suites.scenarios.late_produces import HANGING, SOURCES

LAST_WITHOUT_VERIFICATION = "3.5.2"

hazard = Hazard(
    title="A late record begins a transaction that never ends, and read_committed readers stop",
    kind=Kind.TRANSACTIONS,
    at_risk="readers with read_committed on brokers before 3.6, whatever the version of the producers",
    cure="Use brokers from 3.6 on; find hanging transactions with kafka-transactions.sh find-hanging and abort them there.",
    sources=SOURCES,
    needs=Needs(kafka=LAST_WITHOUT_VERIFICATION),
    safe_needs=Needs(),
    unsafe=HANGING,
    safe=safe_way(HANGING),
)
