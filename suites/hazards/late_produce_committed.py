"""A Produce request arrives after the abort of its transaction, and the next transaction of the producer commits its records."""

from __future__ import annotations

from suites.scenarios.hazards import Hazard, Kind, Needs, safe_way
from suites.scenarios.late_produces import COMMITTED, SOURCES, VERIFICATION

hazard = Hazard(
    title="A record of an aborted transaction is committed by the next one",
    kind=Kind.TRANSACTIONS,
    at_risk=f"transactional producers on brokers before 3.6, or with {VERIFICATION}=false",
    cure=f"Use brokers from 3.6 on, and leave {VERIFICATION} at its default, true.",
    sources=SOURCES,
    needs=Needs(settings={VERIFICATION: "false"}),
    safe_needs=Needs(),
    unsafe=COMMITTED,
    safe=safe_way(COMMITTED),
)
