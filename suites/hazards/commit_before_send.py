"""A pipeline commits its position before it sends the output, and dies in between: that output is never sent."""

from __future__ import annotations

from dataclasses import replace

from harness.contracts import Mode, ProducerOptions, Verdict
from harness.scenario import ConsumerSettings
from harness.targets import copier
from harness.workers.breakpoints import Moment
from suites.scenarios.hazards import Hazard, Kind, safe_way
from suites.scenarios.pipelines import MODEST, at, held, pipeline

_ACKED = ProducerOptions(acks="all", retries=100)  # only the order of commit and output is wrong
UNSAFE = replace(
    pipeline("none", Mode.AT_MOST_ONCE),
    name="control-commit_before_send",
    judged_as=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"missing_effect": 1},
    # The batch in hand also counts as not delivered, and its commit as ahead of the work.
    tolerates=("undelivered", "overcommitted", "skipped"),
    control=True,
    hazard="commit_before_send",
    observed=False,
    producers=replace(MODEST, acks="all", retries=100),
    pipeline=replace(pipeline("none").pipeline, producer=_ACKED),
    consumers=ConsumerSettings(session_timeout_ms=6000),
    schedule=held(at(Moment.AFTER_COMMIT), copier(1)),
)
hazard = Hazard(
    title="A pipeline that commits its position before it sends the output",
    kind=Kind.TRANSACTIONS,
    at_risk="consume-transform-produce that commits first, or with enable.auto.commit and slow work",
    cure="Send the output and the offsets in one transaction, or commit after the output was acked.",
    sources=("KIP-98",),
    unsafe=UNSAFE,
    safe=safe_way(
        UNSAFE,
        mode=Mode.EXACTLY_ONCE,
        judged_as=None,
        producers=MODEST,
        pipeline=pipeline("none").pipeline,
    ),
)
