"""The output of a pipeline is transactional, but the consumer commits the position: a crash in between sends the output again."""

from __future__ import annotations

from dataclasses import replace

from harness.scenario import Pipeline
from harness.workers.breakpoints import Moment
from suites.scenarios.hazards import Hazard, Kind, safe_way
from suites.scenarios.pipelines import mistaken

# The output is committed, the position is not: the next member sends the output again.
UNSAFE = mistaken("offsets_by_consumer", Pipeline.OFFSETS_BY_CONSUMER, f"kill-{Moment.AFTER_COMMIT}")
hazard = Hazard(
    title="A pipeline with transactional output whose consumer commits the offsets",
    kind=Kind.TRANSACTIONS,
    at_risk="consume-transform-produce applications that call commit() of the consumer beside a transactional producer",
    cure="Send the offsets in the transaction (send_offsets_to_transaction), and never commit them by the consumer.",
    sources=("KIP-98", "KIP-447"),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, pipeline=replace(UNSAFE.pipeline, kind=Pipeline.OFFSETS_IN_TRANSACTION)),
)
