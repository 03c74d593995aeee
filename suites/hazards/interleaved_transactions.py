"""Records of open transactions lie between each other in the log: a transaction reserves no part of it."""

from __future__ import annotations

from harness.contracts import Mode
from harness.scenario import ProducerSettings, Scenario, TransactionSettings
from suites.scenarios.hazards import Hazard, Kind

# Three producers write to the same partitions all the time, and a transaction lasts longer than the time between two records.
hazard = Hazard(
    title="Transactions whose records lie between each other",
    kind=Kind.FALSE_ALARMS,
    at_risk="readers that take the records of a transaction for a contiguous block",
    cure="Recognise the records of a transaction by an id of the application, not by their neighbours.",
    sources=("KIP-98",),
    safe=Scenario(
        name="safe-interleaved_transactions",
        mode=Mode.EXACTLY_ONCE,
        hazard="interleaved_transactions",
        workload="transactional_produce",
        observed=True,
        producers=ProducerSettings(keyed=2, keyless=1, records_per_s=100, records_per_transaction=20),
        transactions=TransactionSettings(topics=2, spread_s=0.3),
    ),
)
