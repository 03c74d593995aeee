"""Pace a producer: compute how many records are due now, without bursts after a stall."""

from __future__ import annotations

import time


class Pace:
    def __init__(self, records_per_s: float, at_most: int = 500) -> None:
        self._rate = records_per_s
        self._at_most = at_most
        self._next = time.monotonic()

    def due(self) -> int:
        """Return how many records to send now. Time lost in a stall is not made up for beyond one burst of `at_most`."""
        now = time.monotonic()
        count = min(self._at_most, int((now - self._next) * self._rate))
        if count:
            self._next = max(self._next + count / self._rate, now - self._at_most / self._rate)
        return count
