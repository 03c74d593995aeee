"""Faults of clients in real runs: they bite, they heal, and the promises hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Consumer, TopicPartition

from faults.fence_producer import FenceProducer
from faults.kill_worker import KillWorker
from faults.pause_worker import PauseWorker
from faults.rebalance import Rebalance
from faults.skew_clock import SkewClock
from harness.campaign import Execute
from harness.contracts import Arena, Bite, Fault, Lane, Mode, Node, Verdict
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import Target, consumer, producer

CASES: list[tuple[Fault, Target]] = [
    (KillWorker(), producer(1)),
    (KillWorker(), consumer(1)),
    (PauseWorker(), producer(2)),
    (PauseWorker(), consumer(2)),
    (Rebalance(), consumer(1)),
    (FenceProducer(), producer(1)),
    (SkewClock(), producer(1)),
    (SkewClock(-600.0), consumer(1)),
    (SkewClock(0.0, 1.5), producer(1)),
]


@pytest.mark.conformance
@pytest.mark.parametrize("mode", [Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE])
@pytest.mark.parametrize(("fault", "target"), CASES, ids=lambda each: str(each))
def test_holds(
    execute: Execute,
    fault: Fault,
    target: Target,
    mode: Mode,
    record_property: Callable[[str, object], None],
) -> None:
    schedule = once(fault, on=target, after_s=0.5, hold_s=2.0)
    result = execute(Scenario(name=f"{mode}-{fault}-{target}", mode=mode, schedule=schedule))
    (window,) = result.reconciled["coverage"]["windows"]
    print(f"\n{window}")
    record_property("bite", window["proof"])
    if isinstance(fault, FenceProducer) and mode is not Mode.EXACTLY_ONCE:
        assert result.verdict is Verdict.INCONCLUSIVE
        assert "has no transactional id" in result.explain()
        return
    assert result.verdict is Verdict.HELD, result.explain()


@pytest.mark.conformance
@pytest.mark.parametrize("mode", [Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE])
def test_holds_with_a_zombie_in_the_group(execute: Execute, mode: Mode) -> None:
    """A consumer that is paused for longer than its session is removed from the group and does not know it when it resumes."""
    schedule = once(PauseWorker(), on=consumer(1), after_s=0.5, hold_s=13.0)
    result = execute(Scenario(name=f"{mode}-pause_worker-zombie", mode=mode, schedule=schedule))
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.reconciled["coverage"]["windows"][0]["healed"]


@dataclass(frozen=True)
class _SeenInRecords(SkewClock):
    """A SkewClock that reads the records that are written while the clock is wrong."""

    off_by_s: list[float] = field(default_factory=list, hash=False)

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        self.off_by_s.append(_newest_is_off_by_s(arena))
        with super().hold(arena, nodes) as bite:
            self.off_by_s.append(_newest_is_off_by_s(arena))
            yield bite


def _newest_is_off_by_s(arena: Arena) -> float:
    """Return the difference between a new record's timestamp and the real time."""
    place = arena.cluster.bootstrap_servers(Lane.CONTROL)
    reader = Consumer({"bootstrap.servers": place, "group.id": f"{arena.topic}-looker"})
    parts = [
        TopicPartition(arena.topic, state.partition) for state in arena.cluster.view().partitions(arena.topic)
    ]
    for part in parts:
        part.offset = reader.get_watermark_offsets(part, timeout=10.0)[1]
    asked = time.time()
    reader.assign(parts)
    record = reader.poll(10.0)
    reader.close()
    assert record is not None
    assert record.error() is None
    return float(record.timestamp()[1]) / 1000 - asked


@pytest.mark.conformance
def test_a_wrong_clock_of_a_producer_is_in_the_times_of_its_records(execute: Execute) -> None:
    fault = _SeenInRecords(offset_s=60.0)
    result = execute(
        Scenario(
            name="idempotent-skew_clock-records",
            mode=Mode.IDEMPOTENT,
            producers=ProducerSettings(keyed=1, keyless=0),
            schedule=once(fault, on=producer(1), after_s=0.5, hold_s=2.0),
        )
    )
    assert result.verdict is Verdict.HELD, result.explain()
    before, during = fault.off_by_s
    print(f"\nrecords are off by {before:+.2f} s before, {during:+.2f} s while the clock is wrong")
    assert abs(before) < 3.0
    assert during == pytest.approx(60.0, abs=3.0)
