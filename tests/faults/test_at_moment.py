"""A fault at a chosen moment of a worker's work: how long the worker waits there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from faults.at_moment import AtMoment
from harness.contracts import Bite, Node
from harness.waiting import wait_until
from tests.fake_arena import make_arena
from tests.faults.test_clients import FakeWorker, WorkersArena, held


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
