"""Readers with read_uncommitted read records of transactions that are aborted later.

Aborted records are flushed before the abort, and the group reads to the end of the log, so each of them is read, some before
their transaction ends.
"""

from __future__ import annotations

from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario
from suites.scenarios.hazards import Hazard, Kind, safe_way

UNSAFE = Scenario(
    name="control-aborted_uncommitted",
    mode=Mode.EXACTLY_ONCE,  # judged as read_committed, but the readers are configured otherwise
    expected=Verdict.VIOLATED,
    requires={"aborted_read": 1},
    tolerates=("premature_read",),
    control=True,
    hazard="aborted_uncommitted",
    produce_s=3.0,
    producers=ProducerSettings(aborted_share=0.8),
    consumers=ConsumerSettings(extra={"isolation.level": "read_uncommitted"}),
)
hazard = Hazard(
    title="Readers with read_uncommitted read records of aborted transactions",
    kind=Kind.TRANSACTIONS,
    at_risk="consumers with isolation.level=read_uncommitted, the default of the Java client (librdkafka's is read_committed)",
    cure="Set isolation.level=read_committed in every consumer of transactional data.",
    sources=("KIP-98",),
    place_in_prove=4,
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, consumers=ConsumerSettings()),
)
