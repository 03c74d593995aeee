"""Checks of journal rows: any bytes can be read as rows, so rows that no run can have written are refused. Pure numpy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.contracts import Outcome
from harness.errors import LedgerError
from harness.ledger import journal
from harness.ledger.events import MOST_OFFSET
from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.ledger.rows import ATTEMPT, DELIVERY, EFFECT

LONGEST_NS = 7 * 24 * 3600 * 1_000_000_000  # a run; the timeline covers all of it
NO_CLOCK = "the ledger's writers do not share a clock, so its times prove nothing"

Rows = npt.NDArray[np.void]
_PLACED = {"partition": (0, 1 << 15), "offset": (0, MOST_OFFSET)}
_RANGES: Mapping[Any, Mapping[str, tuple[int, int]]] = {
    ATTEMPT: {
        "outcome": (0, max(Outcome)), "partition": (-1, 1 << 15), "told_partition": (-1, 1 << 15),
        "offset": (-(1 << 32), MOST_OFFSET), "key": (-1, 1 << 31),
    },
    DELIVERY: _PLACED,
    EFFECT: _PLACED | {"origin_partition": (0, 1 << 15), "origin_offset": (0, MOST_OFFSET),
                              "seq": (0, MOST_OFFSET), "origin_seq": (0, MOST_OFFSET)},
}  # fmt: skip


def need_sound(path: Path, first: int, rows: Rows) -> Rows:
    """Return the same rows; raise an error that names the first row that no run can have written."""
    for name, (low, high) in _RANGES[rows.dtype].items():
        _need(path, first, rows, name, (rows[name] < low) | (rows[name] > high))
    if rows.dtype == DELIVERY:
        # A record that is not intact, or not of this run, may contain any numbers.
        intact = rows["flags"] & (BAD_PAYLOAD | FOREIGN_RUN) == 0
        _need(path, first, rows, "seq", intact & ((rows["seq"] < 0) | (rows["seq"] > MOST_OFFSET)))
    return rows


def need_during(path: Path, first: int, rows: Rows, name: str, zero_ns: int) -> None:
    """Raise unless all times lie within a week of the run's clock; -1 is no time."""
    far = np.flatnonzero((np.abs(rows[name] - zero_ns) > LONGEST_NS) & (rows[name] >= 0))
    if len(far):
        when = rows[name][far[0]]
        raise LedgerError(
            f"{path}: row {first + far[0]} has the time {when}, more than a week from the manifest's clock: {NO_CLOCK}"
        )


def need_whole_regions(path: Path) -> None:
    """Raise if attempts are missing: their file grows by whole regions before they are used, so it was cut."""
    left_over = path.stat().st_size % journal.REGION_BYTES
    if left_over:
        raise LedgerError(
            f"{path}: truncated, its last region has only {left_over} bytes: not a whole ledger"
        )


def _need(path: Path, first: int, rows: Rows, name: str, wrong: npt.NDArray[np.bool_]) -> None:
    if wrong.any():
        at = int(np.argmax(wrong))
        raise LedgerError(
            f"{path}: row {first + at} has the {name} {rows[name][at]}, which is impossible: damaged, or another kind of file"
        )
