"""A pipeline without transactions dies between its output and its commit: the next member sends the output again."""

from __future__ import annotations

from dataclasses import replace

from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings
from harness.targets import copier
from harness.workers.breakpoints import Moment
from suites.scenarios.hazards import Hazard, Kind, safe_way
from suites.scenarios.pipelines import at, held, pipeline

# The output of the batch was acked and its position is not committed. Idempotence avoids duplicates of the library's own.
UNSAFE = replace(
    pipeline("none", Mode.IDEMPOTENT),
    name="control-crash_before_commit",
    judged_as=Mode.EXACTLY_ONCE,
    expected=Verdict.VIOLATED,
    requires={"double_effect": 1},
    control=True,
    hazard="crash_before_commit",
    observed=False,
    consumers=ConsumerSettings(session_timeout_ms=6000),
    schedule=held(at(Moment.AFTER_PRODUCE), copier(1)),
)
hazard = Hazard(
    title="A pipeline without transactions that dies between its output and its commit",
    kind=Kind.TRANSACTIONS,
    at_risk="consume-transform-produce without transactions, also with an idempotent producer",
    cure="Send the output and the offsets of its input in one transaction.",
    sources=("KIP-98", "KIP-129"),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, mode=Mode.EXACTLY_ONCE, judged_as=None),
)
