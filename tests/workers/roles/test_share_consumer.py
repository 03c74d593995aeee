"""A member of a share group: the mode decides whether it accepts records before its work or after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.contracts import Batch, Lane, Mode, Outcome
from harness.errors import UsageError
from harness.ledger.journal import Ledger
from harness.ledger.rows import DELIVERY
from harness.scenario import Scenario
from harness.workers.breakpoints import Moments
from harness.workers.counters import Board
from harness.workers.roles.share_consumer import ShareConsumerRole, ShareConsumerRoleSpec
from harness.workloads.share_group import ShareGroup
from tests.workers.roles.before_work import stopped_before_work


class OneBatch:
    """A library with three records that counts acceptances, and refuses as many as asked to."""

    def __init__(self, refusals: int = 0) -> None:
        self.accepted, self._refusals, self._rest = 0, refusals, [3] * (1 + refusals)

    def open_share_member(self, spec: Any) -> OneBatch:
        return self

    def poll(self, timeout_s: float) -> Batch:
        rows = np.zeros(self._rest.pop() if self._rest else 0, dtype=DELIVERY)
        return Batch(rows, {}, {}, [])

    def accept(self, timeout_s: float) -> tuple[Outcome, str]:
        if self._refusals:
            self._refusals -= 1
            return Outcome.UNKNOWN, "_TIMED_OUT"
        self.accepted += 1
        return Outcome.ACKED, ""

    def close(self) -> None: ...


def member(folder: Path, mode: Mode, library: OneBatch) -> tuple[Moments, Callable[[], None], Path]:
    """Return the moments of the worker, its work, and its journal of processed records."""
    spec = ShareConsumerRoleSpec(
        name="consumer-1",
        client="lying",
        run=1,
        mode=mode,
        lane=Lane.CONSUME,
        topic="t",
        group="g",
        isolation="read_committed",
    )
    board = Board(folder / "consumer-1.0.board")

    def work() -> None:
        with Ledger(folder, "consumer-1.0") as ledger:
            ShareConsumerRole(spec, board).work(library, ledger, lambda: board.read().committed == 1)  # type: ignore[arg-type]

    return Moments(board.path), work, folder / "consumer-1.0.deliveries"


@pytest.mark.parametrize(("mode", "accepted"), [(Mode.AT_LEAST_ONCE, 0), (Mode.AT_MOST_ONCE, 1)])
def test_a_member_stopped_before_its_work_has_accepted_only_in_at_most_once(
    tmp_path: Path, mode: Mode, accepted: int
) -> None:
    library = OneBatch()
    harness, work, worked_on = member(tmp_path, mode, library)
    with stopped_before_work(harness, work, worked_on):
        assert library.accepted == accepted
    assert library.accepted == 1


def test_records_whose_acceptance_failed_are_worked_on_when_they_come_again(tmp_path: Path) -> None:
    _, work, worked_on = member(tmp_path, Mode.AT_MOST_ONCE, OneBatch(refusals=1))
    work()
    assert worked_on.stat().st_size == 3 * DELIVERY.itemsize


def test_a_client_without_share_groups_is_refused_in_one_line(tmp_path: Path) -> None:
    _, work, _ = member(tmp_path, Mode.AT_LEAST_ONCE, object())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^client lying has no share groups; use the client confluent$"):
        work()


def test_a_share_group_has_no_exactly_once() -> None:
    with pytest.raises(ValueError, match="share_group has no exactly_once"):
        ShareGroup(Scenario(name="a", mode=Mode.EXACTLY_ONCE, workload="share_group"), "t", "g")


def test_every_member_of_a_share_group_has_a_name_of_its_own() -> None:
    workload = ShareGroup(Scenario(name="a", mode=Mode.AT_LEAST_ONCE, workload="share_group"), "t", "g")
    members = workload.consumers()
    assert [one.name for one in members] == ["consumer-1", "consumer-2"]
    assert all(one.shares for one in members)
