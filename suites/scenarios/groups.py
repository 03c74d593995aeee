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
from harness.scenario import ChurnSettings, ConsumerSettings, ProducerSettings, Scenario, Timings
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


def _wrong_group(name: str, right: Scenario, *anomalies: str, **wrong: Any) -> Scenario:
    return replace(
        right,
        name=f"wrong-{name}",
        expected=Verdict.VIOLATED,
        requires=dict.fromkeys(anomalies, 1),
        control=True,
        **wrong,
    )


# A member of a group that does not change dies with records in its hands which the group has committed. In a group that changes,
# a rebalance could keep the library from committing, and the dying member is what the rebalance waits for.
_DYING = replace(
    group("range", "none"),
    workload="produce_consume",
    consumers=ConsumerSettings(members=3, session_timeout_ms=6000),
    schedule=held(replace(_IN_ITS_HANDS, wait_s=0.0, until_committed=True), consumer(1)),
)
WRONG_GROUPS = (
    # Committed before the work: if the member dies in between, the records are never processed.
    _wrong_group(
        "commit_first",
        _DYING,
        "undelivered",
        "overcommitted",
        tolerates=("skipped",),  # by the next owner
        mode=Mode.AT_MOST_ONCE,
        judged_as=Mode.AT_LEAST_ONCE,
        producers=ProducerSettings(acks="all", retries=100),
    ),
    # The library's own default: polled records are stored, and soon committed, whether they were processed or not.
    _wrong_group(
        "stored_when_given",
        _DYING,
        "undelivered",
        tolerates=(
            "overcommitted",
            "skipped",
        ),  # its last commits are unknown, other ones may be known
        consumers=replace(_DYING.consumers, auto_commit=True, store_when_given=True),
    ),
)
