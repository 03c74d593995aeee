"""Telling of assignments, and whether a member heard of one in time."""

from __future__ import annotations

import time

from harness.ledger.journal import Ledger

AWAY_S = 2.0  # below every session and poll timeout


class Assignments:
    """Of one member. One that has not polled for long hears late: what it gives back then may be another one's already."""

    def __init__(self, ledger: Ledger, reader: str) -> None:
        self._ledger, self._reader = ledger, reader
        self._polled = time.monotonic()

    def polled(self) -> None:
        """A poll has returned."""
        self._polled = time.monotonic()

    def tell(self, how: str, partitions: list[int]) -> None:
        late = time.monotonic() - self._polled > AWAY_S
        self._ledger.events.write(
            "assignment",
            reader=self._reader,
            how=how,
            partitions=partitions,
            **({"late": True} if late else {}),
        )
