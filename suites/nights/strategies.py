"""Hypothesis strategies over whole scenarios: mode, workload, clients' settings and fault schedules."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from harness.contracts import Mode, TopicSettings
from harness.scenario import (
    ChurnSettings,
    ConsumerSettings,
    PipelineSettings,
    ProducerSettings,
    Scenario,
    Timings,
    TransactionSettings,
)
from harness.schedule import NO_FAULTS, Schedule, Window
from suites.nights.choices import PIPELINES, WORKLOADS, Blow, blows, may_follow, may_overlap

_FIRST_S = 0.5
_PAUSE_S = 2.0  # between two faults in sequence
_LIMITS = Timings(recovery_limit_s=90.0, drain_limit_s=120.0, final_read_limit_s=90.0)
# An application that gives up the end of a transaction sooner than the library asks again (docs/findings/KAFKA-17754.md).
_GIVES_UP = TransactionSettings(end_limit_s=2.0)
_LATE_ENDS = frozenset({"hold_requests", "pause", "sever", "flaky_link", "slow_link"})
_SHORT_SESSION_MS = 6000


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Draw a scenario that has to be HELD. Its name and seed are those of a template: the plan sets them."""
    mode = draw(st.sampled_from(list(Mode)))
    workload = draw(st.sampled_from([name for name, modes in WORKLOADS.items() if mode in modes]))
    schedule = draw(schedules(mode, workload))
    consumers = draw(consumer_settings(mode, workload))
    partitions = draw(st.sampled_from([1, 2, 3, 6]))
    names = {str(window.fault.describe()["fault"]) for window in schedule}
    more: dict[str, Any] = {}
    if mode is Mode.EXACTLY_ONCE and names & _LATE_ENDS:
        more["transactions"] = _GIVES_UP
    if workload in PIPELINES:
        more["pipeline"] = draw(pipeline_settings(workload))
    if workload == "group_churn":
        more["churn"] = ChurnSettings(for_s=draw(st.sampled_from([6.0, 10.0])))
    return Scenario(
        name="drawn",
        mode=mode,
        workload=workload,
        # The targets name partitions 0 and 1.
        topic=TopicSettings(partitions=max(2, partitions) if schedule else partitions),
        producers=draw(producer_settings(mode, workload)),
        consumers=consumers,
        observed=consumers.isolation == "read_committed" and draw(st.booleans()),
        schedule=schedule,
        timings=_LIMITS,
        **more,
    )


@st.composite
def producer_settings(draw: st.DrawFn, mode: Mode, workload: str) -> ProducerSettings:
    transactional = mode is Mode.EXACTLY_ONCE
    rates = [100, 300] if workload in PIPELINES else [200, 1000, 2000]
    return ProducerSettings(
        # With answers librdkafka sends again after NOT_LEADER_OR_FOLLOWER, also with retries=0: no at-most-once (docs/hunts.md).
        acks=draw(st.sampled_from([None, "all"])) if mode is not Mode.AT_MOST_ONCE else None,
        in_flight=draw(st.sampled_from([None, 1, 2, 5])),
        linger_ms=draw(st.sampled_from([None, 0, 5, 100])),
        batch_bytes=draw(st.sampled_from([None, 1024, 16_384, 262_144])),
        compression=draw(st.sampled_from([None, "none", "gzip", "snappy", "lz4", "zstd"])),
        keyed=draw(st.sampled_from([1, 2])),
        keyless=draw(st.sampled_from([1, 2])),
        records_per_s=draw(st.sampled_from(rates)),
        payload_bytes=draw(st.sampled_from([64, 128, 1024])),
        records_per_transaction=draw(st.sampled_from([10, 100, 500])) if transactional else 100,
        aborted_share=draw(st.sampled_from([0.0, 0.1, 0.4])) if transactional else 0.1,
    )


@st.composite
def consumer_settings(draw: st.DrawFn, mode: Mode, workload: str) -> ConsumerSettings:
    # Offsets in transactions of a group with the new protocol are not part of any suite yet.
    protocols = (
        [None, "classic"]
        if mode is Mode.EXACTLY_ONCE or workload in PIPELINES
        else [None, "classic", "consumer"]
    )
    protocol = draw(st.sampled_from(protocols))
    classic = protocol != "consumer"
    plain = mode in (Mode.AT_LEAST_ONCE, Mode.IDEMPOTENT) and workload == "produce_consume"
    return ConsumerSettings(
        members=draw(st.sampled_from([1, 2, 3, 4])) if workload != "group_churn" else 3,
        isolation=draw(st.sampled_from(["read_committed", "read_uncommitted"]))
        if plain
        else "read_committed",
        static=draw(st.booleans()) if workload == "group_churn" and classic else False,
        auto_commit=draw(st.booleans()) if plain else False,
        group_protocol=protocol,
        assignor=draw(st.sampled_from([None, "range", "roundrobin", "cooperative-sticky"]))
        if classic
        else None,
        session_timeout_ms=draw(st.sampled_from([None, _SHORT_SESSION_MS])) if classic else None,
    )


@st.composite
def pipeline_settings(draw: st.DrawFn, workload: str) -> PipelineSettings:
    return PipelineSettings(
        members=draw(st.sampled_from([1, 2, 3])),
        most_effects=draw(st.sampled_from([1, 2, 3])),
        poison_share=0.05 if workload == "dead_letters" else 0.0,
        inputs_per_transaction=draw(st.sampled_from([10, 100])),
        aborted_share=draw(st.sampled_from([0.0, 0.1, 0.3])),
    )


@st.composite
def schedules(draw: st.DrawFn, mode: Mode, workload: str) -> Schedule:
    """Draw no fault, one, two or three at once, or up to three in sequence."""
    every = list(blows(mode, workload))
    shape = draw(st.sampled_from(["single", "single", "overlapping", "sequence", "none"]))
    if shape == "none":
        return NO_FAULTS
    found = [draw(st.sampled_from(every))]
    fits = may_overlap if shape == "overlapping" else may_follow
    for _ in range(0 if shape == "single" else draw(st.sampled_from([1, 1, 2]))):
        others = [each for each in every if all(fits(one, each) for one in found)]
        if others:
            found.append(draw(st.sampled_from(others)))
    windows, at_s = [], _FIRST_S
    for blow in found:
        hold_s = blow.hold_s + draw(st.sampled_from([0.0, 0.0, 1.0, 3.0]))
        windows.append(_window(blow, at_s, hold_s))
        at_s += 0.5 if shape == "overlapping" else hold_s + _PAUSE_S
    return tuple(windows)


def _window(blow: Blow, start_s: float, hold_s: float) -> Window:
    return Window(blow.fault, blow.on, start_s, hold_s)
