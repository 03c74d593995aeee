"""Faults of clients in real runs: they bite, they heal, and what was promised holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faults.fence_producer import FenceProducer
from faults.kill_worker import KillWorker
from faults.pause_worker import PauseWorker
from faults.rebalance import Rebalance
from harness.campaign import Execute
from harness.contracts import Fault, Mode, Verdict
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import Target, consumer, producer

CASES: list[tuple[Fault, Target]] = [
    (KillWorker(), producer(1)),
    (KillWorker(), consumer(1)),
    (PauseWorker(), producer(2)),
    (PauseWorker(), consumer(2)),
    (Rebalance(), consumer(1)),
    (FenceProducer(), producer(1)),
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
    """Stopped for longer than its session lasts, a consumer is thrown out, and does not know it when it wakes up."""
    schedule = once(PauseWorker(), on=consumer(1), after_s=0.5, hold_s=13.0)
    result = execute(Scenario(name=f"{mode}-pause_worker-zombie", mode=mode, schedule=schedule))
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.reconciled["coverage"]["windows"][0]["healed"]
