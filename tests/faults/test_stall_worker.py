"""A worker that is busy for too long: it waits at a moment of its work, and its process runs."""
# ruff: noqa: F811  # fixtures of another file

from __future__ import annotations

import pytest

from faults.stall_worker import StallWorker
from harness import registry
from harness.errors import FaultError
from harness.schedule import fault_of
from harness.testing.check_fault import check_fault
from harness.workers.breakpoints import Moment
from tests.fake_arena import FakeNode
from tests.faults.fake_workers import WorkersArena
from tests.faults.test_clients import arena, held, impatient  # noqa: F401
from tests.faults.test_real_clients import MockArena, real  # noqa: F401


@pytest.mark.parametrize(
    ("moment", "word"),
    [(Moment.BEFORE_WORK, "stall_worker"), (Moment.AFTER_WORK, "stall_worker-after_work")],
)
def test_a_real_member_stalls_and_goes_on(real: MockArena, moment: Moment, word: str) -> None:
    members = [worker for worker in real.workers if worker.role == "consumer"][:1]
    fault = StallWorker(moment=moment.value)
    assert str(fault) == word
    checked = check_fault(fault, real, members)
    assert checked.bite.measured["records_moved"] == 0
    assert checked.healing.measured["new_records"] > 0
    assert registry.load("fault", "stall_worker")() == StallWorker()
    assert fault_of(fault.describe()) == fault


@pytest.mark.usefixtures("impatient")
def test_a_moment_that_is_not_reached_does_not_bite(arena: WorkersArena) -> None:
    arena.fakes[1].lazy = True
    bite = held(StallWorker(), arena, arena.fakes[1])
    assert (bite.bit, bite.proof) == (False, "consumer-1 did not reach before_work in 0.15 s")


@pytest.mark.usefixtures("impatient")
def test_a_worker_that_goes_on_does_not_bite(arena: WorkersArena) -> None:
    """This one waits, and its counters grow all the same."""
    bite = held(StallWorker(), arena, arena.fakes[1])
    assert not bite.bit
    assert bite.measured["records_moved"] > 0
    assert not arena.fakes[1].waits(), "it was released"


def test_a_stall_needs_a_worker_and_a_moment_that_is_known(arena: WorkersArena) -> None:
    assert not held(StallWorker(), arena).bit
    with pytest.raises(FaultError, match="broker-1 is not a worker"):
        held(StallWorker(), arena, FakeNode("broker-1"))
    with pytest.raises(ValueError, match="never"):
        StallWorker(moment="never")
