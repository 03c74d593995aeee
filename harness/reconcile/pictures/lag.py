"""The lag of the group over time: acked records that it had not committed yet. Pure.

The end of a log at a time is the highest offset that was acked until then, as far as the sample of attempts has it. So the
lag may be too small by the records between two sampled ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from harness.contracts import Outcome

MOST_POINTS, MOST_PARTITIONS = 240, 24
_LEAST_STEP_S = 0.1
Row = Mapping[str, Any]
Steps = list[tuple[int, int]]  # time in ns, offset


def lag(sample: Iterable[Row], commits: Iterable[Row], zero_ns: int) -> dict[str, Any] | None:
    """Return {"start_s", "step_s", "partitions": [{"topic", "partition", "behind": […]}]}; None if nothing can be said.

    `sample` are rows of the table of attempts, `commits` rows of the table of commits.
    """
    ends: dict[tuple[int, int], Steps] = defaultdict(list)
    done: dict[tuple[int, int], Steps] = defaultdict(list)
    for row in sample:
        if row["offset"] is not None and row["t_outcome"] is not None:
            ends[row["topic"], row["told_partition"]].append((row["t_outcome"], row["offset"] + 1))
    for row in commits:
        if row["outcome"] == Outcome.ACKED:
            done[row["topic"], row["partition"]].append((row["t"], row["offset"]))
    places = sorted(ends.keys() & done.keys())[:MOST_PARTITIONS]
    if not places:
        return None
    times = [t for place in places for t, _ in (*ends[place], *done[place])]
    step_ns = max(int(_LEAST_STEP_S * 1e9), (max(times) - min(times)) // MOST_POINTS + 1)
    grid = np.arange(min(times), max(times) + step_ns, step_ns)
    behind = {}
    for place in places:
        end = _at(_rising(ends[place]), grid)
        behind[place] = np.maximum(0, end - _at(sorted(done[place]), grid)).tolist()
    return {
        "start_s": round((min(times) - zero_ns) / 1e9, 3),
        "step_s": round(step_ns / 1e9, 6),
        "partitions": [{"topic": t, "partition": p, "behind": behind[t, p]} for t, p in places],
    }


def _rising(steps: Steps) -> Steps:
    """Return the steps in order of time, each with the highest offset until then: acks do not come in order."""
    in_order = sorted(steps)
    highest = accumulate((offset for _, offset in in_order), max)
    return [(t, offset) for (t, _), offset in zip(in_order, highest, strict=True)]


def _at(steps: Steps, grid: Any) -> Any:
    """Return the offset of the last step at or before each time; 0 before the first."""
    times, offsets = np.array(steps, dtype=np.int64).T
    return np.concatenate([[0], offsets])[np.searchsorted(times, grid, side="right")]
