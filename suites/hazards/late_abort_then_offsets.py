"""The request that aborts a transaction arrives late and aborts the output of the next one; its offsets are committed."""

from __future__ import annotations

from suites.scenarios.hazards import Hazard, Kind
from suites.scenarios.late_ends import ABORT_THEN_OFFSETS, GIVES_UP, SOURCES, USE_A_NEW_PRODUCER

hazard = Hazard(
    title="A late abort removes the output of a pipeline but not its offsets",
    kind=Kind.TRANSACTIONS,
    at_risk=GIVES_UP,
    cure=USE_A_NEW_PRODUCER,
    sources=SOURCES,
    unsafe=ABORT_THEN_OFFSETS.uncured,
    safe=ABORT_THEN_OFFSETS.cured,
)
