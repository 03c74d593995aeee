"""Run folders in which most blocks are in doubt: half of all messages are lost, a tenth of the others are reordered.

The history is that of benchmarks.generated.history. A lost message was acked and its offset is a hole in the log. To reorder a
message, it changes places with the next one of its session and batch in the same partition: the one that was sent first
is then found behind the other. Other anomalies that follow are counted as well: a committed transaction with messages
of both kinds is torn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.generated.history import PARTITIONS, SESSIONS, Rows
from benchmarks.generated.run_folders import Generation, Made, new_run

LOST_PART = 0.5  # of all messages
REORDERED_PART = 0.1  # of the others; each takes a partner along


def generate_doubtful(folder: Path, records: int, *, base_offset: int = 0, seed: int = 1) -> Made:
    """Write `folder/doubtful/made`."""
    return _Doubtful(new_run(folder, "doubtful"), records, 0, base_offset, seed).all()


@dataclass
class _Doubtful(Generation):
    def _planted(self, rows: Rows, first: int, stop: int, copies: list[int]) -> Rows:
        """Lose and swap messages of a piece. Rows come in the order of their places."""
        lost = self.rng.random(len(rows)) < LOST_PART
        rows["in_log"][lost] = rows["in_committed"][lost] = False
        self.expected["lost"] += int(np.count_nonzero(lost & rows["owed"]))
        for session in np.unique(rows["session"][rows["txn"] > 0]).tolist():
            mine = (rows["session"] == session) & rows["owed"]
            both = np.intersect1d(rows["txn"][mine & lost], rows["txn"][mine & ~lost])
            self.torn |= {(session, int(txn)) for txn in both}
        order = np.arange(len(rows))
        earlier, later = self._pairs(rows, np.flatnonzero(~lost))
        swapped = self.rng.random(len(earlier)) < 2 * REORDERED_PART
        earlier, later = earlier[swapped], later[swapped]
        order[earlier], order[later] = later, earlier
        self.expected["reordered"] += len(earlier)
        return rows[order]

    def _pairs(self, rows: Rows, there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Neighbours in the log, of one session and batch in one partition; no row is in two pairs."""
        batch = ((rows["round"] * 8 + rows["batch"]) * PARTITIONS + rows["partition"]) * (len(SESSIONS) + 1)
        batch = (batch + rows["session"])[there]
        starts = np.flatnonzero(np.r_[True, batch[1:] != batch[:-1]])
        rank = np.arange(len(there)) - np.repeat(starts, np.diff(np.r_[starts, len(there)]))
        first = np.flatnonzero((rank[:-1] % 2 == 0) & (batch[1:] == batch[:-1]))
        return there[first], there[first + 1]
