"""Scenarios of consumer groups: groups that change, and mistakes of their members. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from faults.at_moment import AtMoment
from faults.kill import Kill
from faults.kill_worker import KillWorker
from faults.pause_worker import PauseWorker
from harness.contracts import Mode, Verdict
from harness.scenario import ChurnSettings, ConsumerSettings, Scenario, Timings
from harness.schedule import NO_FAULTS, Schedule
from harness.targets import consumer, group_coordinator
from harness.workers.breakpoints import Moment
from suites.scenarios.pipelines import held

SHORT = ConsumerSettings(members=3, session_timeout_ms=6000, poll_interval_ms=6000)
KIP_848 = ConsumerSettings(members=3, group_protocol="consumer", poll_interval_ms=6000)
BROKERS_FOR_GROUPS = {  # settings that members of the consumer protocol cannot choose themselves
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
}
# The same for share groups; their defaults let the records of a dead member wait for 45 s.
BROKERS_FOR_SHARE_GROUPS = {
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
    "group.share.record.lock.duration.ms": "6000",
    "group.share.min.record.lock.duration.ms": "6000",
}


GROUPS: Mapping[str, ConsumerSettings] = {
    "range": replace(SHORT, assignor="range"),
    "roundrobin": replace(SHORT, assignor="roundrobin"),
    "cooperative": replace(SHORT, assignor="cooperative-sticky"),
    "static": replace(SHORT, static=True),
    "auto_commit": replace(SHORT, auto_commit=True),
    "consumer": KIP_848,
    "consumer-auto_commit": replace(KIP_848, auto_commit=True),
}
# It dies with unprocessed records, some time after it got them: ten times the commit interval of the library.
_IN_ITS_HANDS = AtMoment(
    KillWorker().describe(), moment=Moment.BEFORE_WORK.value, worker="consumer-1", wait_s=2.0
)
ON_GROUPS: Mapping[str, Schedule] = {
    "none": NO_FAULTS,
    "kill_worker": held(KillWorker(), consumer(1)),
    f"kill-{Moment.BEFORE_WORK}": held(_IN_ITS_HANDS, consumer(1)),
    "zombie": held(PauseWorker(), consumer(1), 9.0),
    "kill-group_coordinator": held(Kill(), group_coordinator()),
}


def group(kind: str, fault: str, mode: Mode = Mode.AT_LEAST_ONCE) -> Scenario:
    return Scenario(
        name=f"group_churn-{kind}-{mode}-{fault}",
        mode=mode,
        workload="group_churn",
        consumers=GROUPS[kind],
        churn=ChurnSettings(for_s=15.0, stall_s=7.0),
        schedule=ON_GROUPS[fault],
        produce_s=12.0,
        timings=Timings(recovery_limit_s=60.0, drain_limit_s=90.0),
    )


GROUP_RUNS = (
    *(group(kind, fault) for kind in GROUPS for fault in ON_GROUPS),
    *(group(kind, "kill_worker", Mode.AT_MOST_ONCE) for kind in ("range", "cooperative", "consumer")),
    group("cooperative", "kill-group_coordinator", Mode.EXACTLY_ONCE),
)


def mistaken(hazard: str, *anomalies: str, **wrong: Any) -> Scenario:
    """Return the unsafe scenario of a hazard: a group whose members make a mistake, and one of them dies."""
    return replace(
        DYING,
        name=f"control-{hazard}",
        hazard=hazard,
        schedule=held(replace(_IN_ITS_HANDS, wait_s=0.0, until_committed=True), consumer(1)),
        expected=Verdict.VIOLATED,
        requires=dict.fromkeys(anomalies, 1),
        control=True,
        **wrong,
    )


# A member of a group that does not change dies with records in its hands. In a group that changes, a rebalance could keep the
# library from committing, and the dying member is what the rebalance waits for.
DYING = replace(
    group("range", "none"),
    workload="produce_consume",
    consumers=ConsumerSettings(members=3, session_timeout_ms=6000),
    schedule=held(_IN_ITS_HANDS, consumer(1)),
)
