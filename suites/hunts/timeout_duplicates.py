"""No broker is reachable for a little longer than records live in the producer: some expire when the others are sent."""

from __future__ import annotations

from dataclasses import replace

from faults.sever import Sever
from harness.hunts.hunt import Hunt
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import every_broker
from suites.hunts import _epochs

PARTITIONS = 6
LIVES_MS = 10_000


def scenario(seed: int) -> Scenario:
    """Cut the clients off for 8 to 11 s: the oldest records expire shortly after, at or before the end of the cut."""
    schedule = once(Sever(shape="clients"), on=every_broker(), after_s=0.5, hold_s=8.0 + seed % 4)
    producers = ProducerSettings(keyed=1, keyless=2, records_per_s=1500, delivery_timeout_ms=LIVES_MS,
                                 request_timeout_ms=3000, extra=_epochs.CLIENT_LOG)  # fmt: skip
    return replace(_epochs.scenario("timeout_duplicates", schedule, seed, PARTITIONS), producers=producers)


hunt = Hunt(
    title="Does an idempotent librdkafka producer write duplicates when records expire as brokers come back?",
    suspicion=_epochs.SUSPICION,
    sources=_epochs.SOURCES,
    scenario=scenario,
    shows=_epochs.SHOWS,
    runs=8,
    not_tried="the default of 5 minutes, Java clients, other releases.",
    log_lines=_epochs.LOG_LINES,
    page=_epochs.PAGE,
)
