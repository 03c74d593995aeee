"""Scenarios of consume, transform, produce, of transactions over many topics, and of groups that change. Pure data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from faults.at_moment import AtMoment
from faults.fence_producer import FenceProducer
from faults.hold_requests import HoldRequests
from faults.kill import Kill
from faults.kill_worker import KillWorker
from faults.pause_worker import PauseWorker
from faults.reassign import Reassign
from faults.sever import Sever
from harness.contracts import Lane, Mode, ProducerOptions, TopicSettings, Verdict
from harness.scenario import (
    Pipeline,
    PipelineSettings,
    ProducerSettings,
    Scenario,
    Timings,
    TransactionSettings,
)
from harness.schedule import NO_FAULTS, Schedule, once, repeat, sequence
from harness.targets import (
    active_controller,
    copier,
    every_broker,
    group_coordinator,
    leader_of,
    output_leader,
    producer,
    transaction_coordinator,
)
from harness.workers.breakpoints import OF_EVERY_COMMIT, Moment
from harness.workloads.transactional_produce import COORDINATOR_LOOKS_EVERY_S

ZOMBIE_S = 13.0  # longer than the session of a member, which is 10 s
CUT_OFF_S = 3.0
AFTER_S = 0.5


def held(fault: Any, on: Any, hold_s: float = 1.5) -> Schedule:
    return once(fault, on=on, after_s=AFTER_S, hold_s=hold_s)


def at(moment: Moment, fault: Any = KillWorker(), worker: str = "copier-1") -> AtMoment:  # noqa: B008  # frozen
    return AtMoment(fault.describe(), moment=moment.value, worker=worker)


# --- exactly-once pipelines ------------------------------------------------------------------------

COORDINATOR = transaction_coordinator(1, "copier")


def _cut_off(moment: Moment, worker: str = "copier-1") -> Schedule:
    return held(at(moment, Sever(shape="clients"), worker), every_broker(), CUT_OFF_S)


ON_PIPELINES: Mapping[str, Schedule] = {
    "none": NO_FAULTS,
    **{f"kill-{moment}": held(at(moment), copier(1)) for moment in OF_EVERY_COMMIT},
    **{
        f"zombie-{moment}": held(at(moment, PauseWorker()), copier(1), ZOMBIE_S) for moment in OF_EVERY_COMMIT
    },
    **{f"cut_off-{moment}": _cut_off(moment) for moment in OF_EVERY_COMMIT},
    "kill-transaction_coordinator": held(at(Moment.AFTER_PRODUCE, Kill()), COORDINATOR),
    "kill-transaction_coordinator-during_commit": held(at(Moment.DURING_COMMIT, Kill()), COORDINATOR),
    "kill-group_coordinator": held(at(Moment.AFTER_PRODUCE, Kill()), group_coordinator()),
    "kill-output_leader": held(at(Moment.AFTER_PRODUCE, Kill()), output_leader(0)),
    "kill-controller": held(Kill(), active_controller()),
    "hold-EndTxn": held(HoldRequests(("EndTxn",), lane=Lane.CONSUME), COORDINATOR, 6.0),
    "fence": held(at(Moment.AFTER_PRODUCE, FenceProducer()), copier(1)),
    "reassign": held(Reassign(), leader_of(0)),
}
# The end of a transaction is late and the library would retry: that is KAFKA-17754, and breaks promises
# (suites/hazards/test_late_end_transaction.py). An application that gives up sooner and opens a new producer is safe.
CURED = TransactionSettings(end_limit_s=2.0)  # less than the client's socket.timeout.ms
POISONED = PipelineSettings(poison_share=0.05)
MODEST = ProducerSettings(
    records_per_s=400
)  # a pipeline has to keep up with its input, on two cores, under faults


def pipeline(fault: str, mode: Mode = Mode.EXACTLY_ONCE, workload: str = "transactional_copy") -> Scenario:
    settings = POISONED if workload == "dead_letters" else PipelineSettings()
    return Scenario(
        name=f"{workload}-{mode}-{fault}",
        mode=mode,
        workload=workload,
        observed=True,
        pipeline=settings,
        producers=MODEST,
        transactions=CURED if fault == "hold-EndTxn" else TransactionSettings(),
        schedule=ON_PIPELINES[fault],
        timings=Timings(recovery_limit_s=90.0, drain_limit_s=90.0),
    )


PIPELINES = tuple(
    pipeline(fault, workload=workload)
    for workload in ("transactional_copy", "dead_letters")
    for fault in ON_PIPELINES
)
_BETWEEN = {  # one of commit and send is done, the other is not
    Mode.AT_LEAST_ONCE: Moment.AFTER_PRODUCE,
    Mode.AT_MOST_ONCE: Moment.AFTER_COMMIT,
}
_OF_BROKERS = ("kill-group_coordinator", "kill-output_leader", "kill-controller", "reassign")
WEAKER_PIPELINES = tuple(
    pipeline(fault, mode)
    for mode, between in _BETWEEN.items()
    for fault in ("none", f"kill-{between}", f"zombie-{between}", f"cut_off-{between}", *_OF_BROKERS)
)


# --- common mistakes ---------------------------------------------------------------------------------


def mistaken(hazard: str, kind: Pipeline, fault: str, **more: Any) -> Scenario:
    """Return the unsafe scenario of a hazard: a pipeline of this kind, whose inputs take effect twice under the fault."""
    right = pipeline(fault)
    return replace(
        right,
        name=f"control-{hazard}",
        hazard=hazard,
        pipeline=replace(right.pipeline, kind=kind),
        expected=Verdict.VIOLATED,
        requires={"double_effect": 1},
        control=True,
        **more,
    )


# Each session has another id and does not end the transaction of the one before: nothing is violated, but readers are blocked.
_KILLED = pipeline("kill-after_produce")
RANDOM_IDS = replace(
    _KILLED,
    name="wrong-random_ids-kill-after_produce",
    pipeline=replace(
        _KILLED.pipeline, kind=Pipeline.RANDOM_IDS, producer=ProducerOptions(transaction_timeout_ms=120_000)
    ),
    control=True,
)

# --- transactions over many topics -------------------------------------------------------------------

IMPATIENT_S = 5.0
ON_TRANSACTIONS: Mapping[str, Schedule] = {
    "none": NO_FAULTS,
    "kill-after_produce": held(at(Moment.AFTER_PRODUCE, worker="producer-1"), producer(1)),
    "kill-during_commit": held(at(Moment.DURING_COMMIT, worker="producer-1"), producer(1)),
    # So long that the coordinator has aborted its transaction when it resumes.
    "zombie-after_produce": held(
        at(Moment.AFTER_PRODUCE, PauseWorker(), "producer-1"),
        producer(1),
        IMPATIENT_S + COORDINATOR_LOOKS_EVERY_S + 2.0,
    ),
    "cut_off-after_produce": _cut_off(Moment.AFTER_PRODUCE, "producer-1"),
    "cut_off-during_commit": _cut_off(Moment.DURING_COMMIT, "producer-1"),
    "fence": held(at(Moment.AFTER_PRODUCE, FenceProducer(), "producer-1"), producer(1)),
    "kill-leader": held(Kill(), leader_of(0)),
    "kill-transaction_coordinator": held(
        at(Moment.DURING_COMMIT, Kill(), "producer-1"), transaction_coordinator(1)
    ),
    "kill-controller": held(Kill(), active_controller()),
    "hold-EndTxn": held(HoldRequests(("EndTxn",)), transaction_coordinator(1), 6.0),
    "reassign": held(Reassign(), leader_of(0)),
}


ONE_OF_EACH = ProducerSettings(keyed=1, keyless=1, records_per_s=1000)
IMPATIENT = replace(
    ONE_OF_EACH,
    transaction_timeout_ms=int(IMPATIENT_S * 1000),
    delivery_timeout_ms=int(IMPATIENT_S * 1000),
)


def transactions(fault: str) -> Scenario:
    return Scenario(
        name=f"transactional_produce-{fault}",
        mode=Mode.EXACTLY_ONCE,
        workload="transactional_produce",
        observed=True,
        producers=IMPATIENT if fault.startswith("zombie") else ONE_OF_EACH,
        transactions=CURED if fault == "hold-EndTxn" else TransactionSettings(),
        schedule=ON_TRANSACTIONS[fault],
    )


# No record of a timed-out transaction may be visible; the coordinator checks for them every 10 s.
TIMED_OUT = Scenario(
    name="transactional_produce-timed_out",
    mode=Mode.EXACTLY_ONCE,
    workload="transactional_produce",
    producers=IMPATIENT,
    transactions=TransactionSettings(timed_out_share=0.03),
    produce_s=20.0,
)
RIVALS = Scenario(
    name="transactional_produce-rivals",
    mode=Mode.EXACTLY_ONCE,
    workload="transactional_produce",
    producers=ONE_OF_EACH,
    transactions=TransactionSettings(rivals=1),
    produce_s=12.0,
)
TRANSACTIONS = (*(transactions(fault) for fault in ON_TRANSACTIONS), TIMED_OUT, RIVALS)

# --- the soak -------------------------------------------------------------------------------------------

# Everything that ends, moves or fences a transaction or a member, in sequence.
_ROUND = sequence(
    *(
        ON_PIPELINES[name]
        for name in (
            "kill-during_commit", "fence", "kill-transaction_coordinator", "zombie-after_produce",
            "kill-group_coordinator", "hold-EndTxn", "kill-output_leader", "reassign", "cut_off-after_send_offsets",
            "kill-controller",
        )
    ),
    pause_s=5.0,
)  # fmt: skip


_PERIOD_S = 150.0  # longer than a round, so that all members catch up with the input before the next


def soak(minutes: float) -> Scenario:
    """Return a scenario with small transactions of many members, as many as two cores can do, and rounds of faults.

    The rounds last at least `minutes`. One transaction takes a member 80 ms and the brokers 14 to 19 ms of a processor. So two idle
    cores do 80 to 100 transactions a second, and about half of that in a pipeline that reads, is observed and is recorded.
    """
    return Scenario(
        name="soak-exactly_once",
        mode=Mode.EXACTLY_ONCE,
        observed=True,
        workload="transactional_copy",
        topic=TopicSettings(partitions=12),
        pipeline=PipelineSettings(members=12, inputs_per_transaction=8),
        producers=ProducerSettings(records_per_s=80),
        transactions=CURED,
        schedule=repeat(_ROUND, period_s=_PERIOD_S, times=math.ceil(minutes * 60 / _PERIOD_S)),
        timings=Timings(recovery_limit_s=120.0, drain_limit_s=180.0, final_read_limit_s=180.0),
    )
