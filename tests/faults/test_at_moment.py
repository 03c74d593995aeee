"""A fault at a chosen moment of a worker's work: how long the worker waits there."""
# ruff: noqa: F811  # fixtures of another file

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from faults.at_moment import AtMoment
from faults.kill_worker import KillWorker
from faults.pause_worker import PauseWorker
from harness.contracts import Bite, Fault, Node
from harness.errors import FaultError, UsageError
from harness.kafka.admin import Administrator
from harness.schedule import fault_of
from harness.waiting import wait_until
from tests.fake_arena import make_arena
from tests.faults.fake_workers import FakeWorker, WorkersArena
from tests.faults.test_clients import arena, held, impatient  # noqa: F401
from tests.faults.test_real_clients import MockArena, real  # noqa: F401


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("inner", [KillWorker(), PauseWorker()], ids=str)
def test_a_fault_begins_when_the_worker_waits_and_lets_it_go(arena: WorkersArena, inner: Fault) -> None:
    fault = AtMoment(inner.describe(), moment="during_commit", worker="producer-1", wait_s=0.01, stay_s=0.01)
    worker = arena.fakes[0]
    with fault.hold(arena, [worker]) as bite:
        assert bite.bit, bite.proof
        assert bite.proof.startswith("producer-1 waited at during_commit after")
        wait_until(lambda: not worker.waits(), 5.0, "it still waits")
    assert fault.healed(arena, [worker]).healed
    assert fault_of(fault.describe()) == fault
    assert str(fault) == f"at_moment-during_commit-{inner}"


def test_an_unreached_moment_does_not_bite(arena: WorkersArena) -> None:
    arena.patience = 0.05 / 30
    arena.fakes[0].lazy = True
    bite = held(AtMoment(worker="producer-1"), arena, arena.fakes[0])
    assert (bite.bit, bite.proof) == (False, "producer-1 did not reach after_produce in 0.05 s")
    assert arena.fakes[0].alive, "the fault did not begin"


def test_a_moment_needs_its_worker_and_a_name_that_is_known(arena: WorkersArena) -> None:
    with pytest.raises(FaultError, match="no worker copier-1"):
        held(AtMoment(), arena, arena.fakes[0])
    with pytest.raises(ValueError, match="never"):
        AtMoment(moment="never")
    with pytest.raises(UsageError, match="no_such_fault"):
        AtMoment({"fault": "no_such_fault"})


@dataclass(frozen=True)
class SlowFault:
    """Begins late, kills the worker or not, and bites when the worker has gone on."""

    strikes: bool
    waited: list[bool] = field(default_factory=list)  # whether the worker still waited when this fault began

    @contextmanager
    def hold(self, arena: WorkersArena, nodes: Sequence[Node]) -> Iterator[Bite]:
        worker = arena.fakes[0]
        time.sleep(0.3)
        self.waited.append(worker.waits())
        if self.strikes:
            worker.kill()
        wait_until(lambda: not worker.waits(), 5.0, "it still waits")
        yield Bite(True, "gone on")


@pytest.mark.parametrize("strikes", [True, False])
def test_the_worker_waits_until_the_fault_has_struck_or_gives_no_sign(strikes: bool) -> None:
    fault, slow = AtMoment(worker="producer-1", stay_s=0.01), SlowFault(strikes)
    object.__setattr__(fault, "inner", slow)
    patience = 10.0 if strikes else 0.12  # times 5 s without a sign
    arena = WorkersArena(make_arena().cluster, fakes=[FakeWorker("producer-1")], patience=patience)
    assert held(fault, arena, arena.fakes[0]).bit
    assert slow.waited == [True], "however long it takes to begin"


@pytest.mark.parametrize(("committed", "bit"), [(8, True), (7, False)])
def test_the_fault_can_wait_until_unworked_records_are_committed(
    monkeypatch: pytest.MonkeyPatch, committed: int, bit: bool
) -> None:
    """The worker has worked on the records below 7 of partition 0."""
    monkeypatch.setattr(Administrator, "__init__", lambda *_: None)
    monkeypatch.setattr(Administrator, "committed", lambda _self, group: {0: committed, 1: 100})
    arena = WorkersArena(make_arena().cluster, fakes=[FakeWorker("producer-1")], patience=0.01)
    fault = AtMoment(worker="producer-1", until_committed=True)
    with fault.hold(arena, arena.fakes) as bite:
        assert bite.bit == bit, bite.proof
        assert arena.fakes[0].alive != bit
    assert fault_of(fault.describe()) == fault


def test_a_worker_reports_how_far_it_has_worked(real: MockArena) -> None:
    consumer = next(worker for worker in real.workers if worker.role == "consumer")
    worked_on = wait_until(consumer.worked_on, 30.0, "no delivery is recorded")
    assert 0 < sum(worked_on.values()) <= consumer.counters().delivered + 1000, (
        "the board may be a batch behind"
    )
