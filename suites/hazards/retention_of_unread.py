"""Records expire before a slow group has read them: they are acked, they are no longer there, and no reader had them.

The fault bites only when records beyond the group's committed offsets have expired. Kafka keeps its promise, so `expired` is
counted; this application has to read every record, so it forbids that.
"""

from __future__ import annotations

from faults.pause_worker import PauseWorker
from faults.short_retention import ShortRetention
from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings, Scenario
from harness.schedule import once, together
from harness.targets import consumer, leader_of
from suites.scenarios.hazards import Hazard, Kind, Needs, safe_way

OFTEN = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}

UNSAFE = Scenario(
    name="control-retention_of_unread",
    mode=Mode.IDEMPOTENT,
    expected=Verdict.VIOLATED,
    requires={"expired": 1},
    forbids=("expired",),
    control=True,
    hazard="retention_of_unread",
    schedule=together(
        (PauseWorker(), consumer(1)),
        (ShortRetention(beyond_group=True), leader_of(0)),
        after_s=0.5,
        hold_s=0.5,
    ),
    consumers=ConsumerSettings(members=1),
)
hazard = Hazard(
    title="Records expire before the group has read them",
    kind=Kind.RETENTION,
    at_risk="groups that fall behind by more than retention.ms or retention.bytes, whatever the client",
    cure="Keep records for longer than a group may be behind (retention.ms, retention.bytes), and raise an alarm on its lag.",
    sources=("https://kafka.apache.org/documentation/#topicconfigs_retention.ms",),
    quick=True,
    unsafe=UNSAFE,
    # The group is behind for as long; the topic keeps its records.
    safe=safe_way(UNSAFE, schedule=once(PauseWorker(), on=consumer(1), after_s=0.5, hold_s=5.0)),
    needs=Needs(settings=OFTEN),
)
