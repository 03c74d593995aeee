"""The positions that a member of a pipeline commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.contracts import Batch


class Positions:
    """Knows what was committed, and which inputs were passed although their transaction was aborted."""

    def __init__(self) -> None:
        self._committed: dict[int, int] = {}
        self._passed: dict[int, int] = {}

    def after(self, batch: Batch) -> dict[int, int]:
        """Return the offsets to commit: behind the last record, or the end where only markers follow it."""
        positions = self._passed | dict(batch.positions)
        for partition, end in batch.ends.items():
            if end > self._committed.get(partition, -1):
                positions[partition] = max(end, positions.get(partition, 0))
        return positions

    def committed(self, positions: Mapping[int, int]) -> None:
        self._committed |= positions

    def passed(self, positions: Mapping[int, int]) -> None:
        """Include these positions in the next commit: the member reads on although their inputs have no output."""
        self._passed = dict(positions)

    def forget(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            self._committed.pop(partition, None)
            self._passed.pop(partition, None)
