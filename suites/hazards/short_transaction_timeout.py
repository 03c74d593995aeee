"""Work on a transaction takes longer than its timeout: the coordinator aborts it, the commit fails, and nothing of it is visible."""

from __future__ import annotations

from dataclasses import replace

from suites.scenarios.hazards import Hazard, Kind
from suites.scenarios.pipelines import TIMED_OUT

hazard = Hazard(
    title="Transactions that take longer than transaction.timeout.ms",
    kind=Kind.FALSE_ALARMS,
    at_risk="transactional producers whose work takes longer than transaction.timeout.ms (60 s by default)",
    cure="Set transaction.timeout.ms above the longest work, and open a new producer when the old one was fenced.",
    sources=("KIP-98", "KIP-588"),
    safe=replace(TIMED_OUT, name="safe-short_transaction_timeout", hazard="short_transaction_timeout"),
)
