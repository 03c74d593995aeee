"""Record assignments of partitions, and whether the member learnt of them in time."""

from __future__ import annotations

import time

from harness.ledger.journal import Ledger

AWAY_S = 2.0  # below every session and poll timeout


class Assignments:
    """The assignments of one member.

    A member that has not polled for long learns of them late: another member may own the partitions that it gives back.
    """

    def __init__(self, ledger: Ledger, reader: str) -> None:
        self._ledger, self._reader = ledger, reader
        self._polled = time.monotonic()

    def polled(self) -> None:
        """Note that a poll has returned."""
        self._polled = time.monotonic()

    def record(self, how: str, partitions: list[int]) -> None:
        late = time.monotonic() - self._polled > AWAY_S
        self._ledger.events.write(
            "assignment",
            reader=self._reader,
            how=how,
            partitions=partitions,
            **({"late": True} if late else {}),
        )
