"""The request that commits a transaction arrives late and commits records of the next one, which the producer then aborts."""

from __future__ import annotations

from suites.scenarios.hazards import Hazard, Kind
from suites.scenarios.late_ends import COMMIT_THEN_ABORT, GIVES_UP, SOURCES, USE_A_NEW_PRODUCER

hazard = Hazard(
    title="A late commit makes records of an aborted transaction visible",
    kind=Kind.TRANSACTIONS,
    at_risk=GIVES_UP,
    cure=USE_A_NEW_PRODUCER,
    sources=SOURCES,
    quick=True,
    unsafe=COMMIT_THEN_ABORT.uncured,
    safe=COMMIT_THEN_ABORT.cured,
)
