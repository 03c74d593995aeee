"""A member of a group before its work: the mode decides what is committed by then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.contracts import Batch, Lane, Mode, Outcome
from harness.ledger.journal import Ledger
from harness.ledger.rows import DELIVERY
from harness.workers.breakpoints import Moments
from harness.workers.counters import Board
from harness.workers.roles.consumer import ConsumerRole, ConsumerRoleSpec
from tests.workers.roles.before_work import stopped_before_work


class OneBatch:
    """A library with three records that records the commits."""

    def __init__(self) -> None:
        self.committed: list[Mapping[int, int]] = []
        self._rest = [3]

    def open_consumer(self, spec: Any, on_assignment: Any) -> OneBatch:
        return self

    def poll(self, timeout_s: float, at_most: int = 1000) -> Batch:
        rows = np.zeros(self._rest.pop() if self._rest else 0, dtype=DELIVERY)
        return Batch(rows, {0: 3} if len(rows) else {}, {}, [], None, [])

    def commit(self, positions: Mapping[int, int]) -> tuple[Outcome, str]:
        self.committed.append(dict(positions))
        return Outcome.ACKED, ""

    def close(self) -> None: ...


def member(folder: Path, mode: Mode, library: OneBatch) -> tuple[Moments, Callable[[], None], Path]:
    """Return the moments of the worker, its work, and its journal of processed records."""
    spec = ConsumerRoleSpec(
        name="consumer-1",
        run=1,
        mode=mode,
        lane=Lane.CONSUME,
        topic="t",
        group="g",
        isolation="read_committed",
    )
    board = Board(folder / "consumer-1.0.board")
    harness = Moments(board.path)

    def work() -> None:
        with Ledger(folder, "consumer-1.0") as ledger:
            ConsumerRole(spec, board).work(library, ledger, lambda: board.read().delivered == 3)  # type: ignore[arg-type]

    return harness, work, folder / "consumer-1.0.deliveries"


@pytest.mark.parametrize(("mode", "committed"), [(Mode.AT_LEAST_ONCE, 0), (Mode.AT_MOST_ONCE, 1)])
def test_a_member_stopped_before_its_work_has_committed_only_in_at_most_once(
    tmp_path: Path, mode: Mode, committed: int
) -> None:
    library = OneBatch()
    harness, work, worked_on = member(tmp_path, mode, library)
    with stopped_before_work(harness, work, worked_on):
        assert len(library.committed) == committed
    assert library.committed == [{0: 3}]
