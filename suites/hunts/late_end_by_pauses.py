"""A late EndTxn without a proxy that holds requests: the coordinator stops for a while, and links have long delays."""

from __future__ import annotations

from dataclasses import replace

from faults.pause import Pause
from faults.slow_link import SlowLink
from harness.hunts.hunt import Hunt
from harness.scenario import Scenario, Timings, TransactionSettings
from harness.schedule import Schedule, every, once
from harness.targets import every_broker, transaction_coordinator
from suites.scenarios.late_ends import GIVES_UP_MS, SMALL

_PAUSES = every(8.0, Pause(), on=transaction_coordinator(1), hold_s=4.0, times=3)
_DELAYS = once(SlowLink(latency_ms=2500, lanes="producers"), on=every_broker(), after_s=0.5, hold_s=20.0)
WAYS: tuple[Schedule, ...] = (_PAUSES, _DELAYS)


def scenario(seed: int) -> Scenario:
    """Return a run whose library gives up after 3 s and asks for the end of the transaction again."""
    return replace(
        SMALL,
        name="hunt-late_end_by_pauses",
        workload="transactional_produce",
        producers=replace(SMALL.producers, records_per_s=200, request_timeout_ms=GIVES_UP_MS),
        transactions=TransactionSettings(topics=2),
        timings=Timings(recovery_limit_s=120.0, drain_limit_s=120.0),
        schedule=WAYS[seed % len(WAYS)],
        seed=seed,
    )


hunt = Hunt(
    title="Does a late EndTxn end the next transaction when nothing but pauses and delays of packets occurs?",
    suspicion=(
        "docs/findings/KAFKA-17754.md shows it with a proxy that holds single requests. A stopped coordinator, or a link with long "
        "delays, could deliver an old EndTxn behind the repeated one as well."
    ),
    sources=("KAFKA-17754",),
    scenario=scenario,
    shows=("aborted_read", "torn", "lost", "premature_read"),
    runs=10,
    not_tried="real networks that reorder connections, pipelines with offsets in the transaction.",
)
