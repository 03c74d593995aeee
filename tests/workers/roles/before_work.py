"""A member of a group that is stopped before its work, and then goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.ledger.rows import DELIVERY
from harness.waiting import wait_until
from harness.workers.breakpoints import Moment, Moments

RECORDS = 3  # that the member is given


@contextmanager
def stopped_before_work(harness: Moments, work: Callable[[], None], worked_on: Path) -> Iterator[None]:
    """Run the block while the member waits before its work; afterwards it has worked on all its records."""
    harness.stop_at(Moment.BEFORE_WORK)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    wait_until(harness.reached, 5.0, "it did not come there")
    assert worked_on.stat().st_size == 0, "it waits before its work"
    yield
    harness.go_on()
    thread.join(5.0)
    assert worked_on.stat().st_size == RECORDS * DELIVERY.itemsize
