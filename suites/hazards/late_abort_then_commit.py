"""The request that aborts a transaction arrives late and aborts a part of the next one, which the producer then commits."""

from __future__ import annotations

from suites.scenarios.hazards import Hazard, Kind
from suites.scenarios.late_ends import ABORT_THEN_COMMIT, GIVES_UP, SOURCES, USE_A_NEW_PRODUCER

hazard = Hazard(
    title="A late abort removes a part of a committed transaction",
    kind=Kind.TRANSACTIONS,
    at_risk=GIVES_UP,
    cure=USE_A_NEW_PRODUCER,
    sources=SOURCES,
    unsafe=ABORT_THEN_COMMIT.uncured,
    safe=ABORT_THEN_COMMIT.cured,
)
