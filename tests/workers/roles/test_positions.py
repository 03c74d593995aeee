"""The positions that a pipeline commits: behind what it read, at ends, and behind inputs that it passed."""

from __future__ import annotations

import numpy as np

from harness.contracts import Batch
from harness.ledger.rows import DELIVERY
from harness.workers.roles._positions import Positions


def batch(positions: dict[int, int], ends: dict[int, int] | None = None) -> Batch:
    return Batch(rows=np.zeros(0, dtype=DELIVERY), positions=positions, ends=ends or {}, errors=())


def test_an_end_is_committed_once() -> None:
    positions = Positions()
    assert positions.after(batch({0: 5}, {0: 7, 1: 3})) == {0: 7, 1: 3}
    positions.committed({0: 7, 1: 3})
    assert positions.after(batch({}, {0: 7, 1: 4})) == {1: 4}
    positions.forget([0])
    assert positions.after(batch({}, {0: 7, 1: 3})) == {0: 7}


def test_passed_positions_are_in_the_next_commit() -> None:
    positions = Positions()
    positions.passed(positions.after(batch({0: 5, 1: 2})))
    assert positions.after(batch({})) == {0: 5, 1: 2}
    assert positions.after(batch({0: 8})) == {0: 8, 1: 2}
    positions.forget([1])
    assert positions.after(batch({})) == {0: 5}
    positions.passed({})
    assert positions.after(batch({})) == {}
