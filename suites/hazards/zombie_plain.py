"""A member of a pipeline without transactions pauses, is replaced, and then goes on with the batch that it had in hand."""

from __future__ import annotations

from dataclasses import replace

from faults.pause_worker import PauseWorker
from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings
from harness.targets import copier
from harness.workers.breakpoints import Moment
from suites.scenarios.hazards import Hazard, Kind, safe_way
from suites.scenarios.pipelines import at, held, pipeline

# The pause ends only when another member has committed further in every partition, so the output of the batch exists already.
UNSAFE = replace(
    pipeline("none", Mode.IDEMPOTENT),
    name="control-zombie_plain",
    judged_as=Mode.EXACTLY_ONCE,
    expected=Verdict.VIOLATED,
    requires={"double_effect": 1},
    control=True,
    hazard="zombie_plain",
    observed=False,
    consumers=ConsumerSettings(session_timeout_ms=6000),
    schedule=held(at(Moment.BEFORE_WORK, PauseWorker(until_overtaken=True)), copier(1)),
)
hazard = Hazard(
    title="A paused member of a pipeline without transactions that goes on after it was replaced",
    kind=Kind.ZOMBIES,
    at_risk="consume-transform-produce without transactions; pauses by garbage collection, swapping or a suspended machine",
    cure="Send the offsets in the transaction, with the member's group metadata.",
    sources=("KIP-447",),
    quick=True,
    unsafe=UNSAFE,
    # The zombie's offsets are refused, since the group does not know the member any longer, and its output is aborted.
    safe=safe_way(UNSAFE, mode=Mode.EXACTLY_ONCE, judged_as=None),
)
