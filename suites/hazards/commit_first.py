"""Offsets are committed before the work: if the member dies in between, the records are never processed."""

from __future__ import annotations

from harness.contracts import Mode
from harness.scenario import ProducerSettings
from suites.scenarios.groups import DYING, mistaken
from suites.scenarios.hazards import Hazard, Kind, safe_way

UNSAFE = mistaken(
    "commit_first",
    "undelivered",
    "overcommitted",
    tolerates=("skipped",),  # by the next owner
    mode=Mode.AT_MOST_ONCE,
    judged_as=Mode.AT_LEAST_ONCE,
    producers=ProducerSettings(acks="all", retries=100),
)
hazard = Hazard(
    title="Offsets committed before the work, and a member that dies in between",
    kind=Kind.CONSUMERS,
    at_risk="consumers that commit what they have polled before they have processed it",
    cure="Commit offsets after the work, and make the work safe to repeat.",
    sources=("the documentation of KafkaConsumer, delivery semantics",),
    unsafe=UNSAFE,
    # Nothing is committed before it is processed, so the fault cannot wait for that: the member dies in the same place.
    safe=safe_way(
        UNSAFE,
        mode=Mode.AT_LEAST_ONCE,
        judged_as=None,
        producers=ProducerSettings(),
        schedule=DYING.schedule,
    ),
)
