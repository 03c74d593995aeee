"""The progress of a worker: its board, a few counters in a small mapped file, and the end of its journal.

It is for waiting only. Verdicts come from the ledger as a whole, never from here.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from harness.contracts import Counters
from harness.ledger.reading import read_deliveries

_LAYOUT = struct.Struct("<6q")
_CLOCK = struct.Struct("<2d")  # behind the counters
_SIZE = _LAYOUT.size + _CLOCK.size


@dataclass(frozen=True)
class ShownClock:
    wall_minus_monotonic_s: float = 0.0
    at_s: float = 0.0  # on the monotonic clock; 0: never


class Board:
    """Written by one worker, read by the harness; torn reads only make a progress line wrong for a moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists() or path.stat().st_size != _SIZE:
            path.write_bytes(bytes(_SIZE))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)

    def show(self, counters: Counters) -> None:
        _LAYOUT.pack_into(self._map, 0, counters.attempted, counters.acked, counters.failed,
                          counters.delivered, counters.committed, counters.sessions)  # fmt: skip

    def read(self) -> Counters:
        return Counters(*_LAYOUT.unpack_from(self._map, 0))

    def show_clock(self, clock: ShownClock) -> None:
        _CLOCK.pack_into(self._map, _LAYOUT.size, clock.wall_minus_monotonic_s, clock.at_s)

    def read_clock(self) -> ShownClock:
        return ShownClock(*_CLOCK.unpack_from(self._map, _LAYOUT.size))

    def close(self) -> None:
        self._map.close()


def last_positions(deliveries: Path) -> dict[int, int]:
    """Return the offset after the last delivery of each partition in a journal so far; empty if there is no such journal."""
    if not deliveries.exists():
        return {}
    rows, _ = read_deliveries(deliveries)
    return dict(zip(rows["partition"].tolist(), (rows["offset"] + 1).tolist(), strict=True))
