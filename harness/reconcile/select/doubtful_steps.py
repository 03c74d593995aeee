"""Steps of readers in doubt: steps back, and steps that may have left out a record. Pure numpy and Arrow.

A row is a step: the row that it comes from and the row that it reaches. Each task also reports, as an edge, the first and
the last row that it saw of a reader and partition; the driver finds the steps across tasks from them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa

from harness.reconcile.arrays import Bools, Columns, Ints, place_of
from harness.reconcile.screen.reader_steps import COLUMNS, Rows, Steps, Trail, lanes
from harness.reconcile.screen.spaces import Space, Why
from harness.reconcile.screen.summaries import BITS
from harness.reconcile.select.across_tasks import Doubts

NAMES = ("run", *(f"from_{name}" for name in COLUMNS), *(f"to_{name}" for name in COLUMNS))
STEPS = pa.schema([(name, pa.int64()) for name in NAMES])

# run, place -> first and last offsets in doubt, in order
Jumped = Mapping[tuple[int, int], tuple[Ints, Ints]]


def jumped_of(doubts: Doubts) -> Jumped:
    """Return the ranges in which readers may have left out a record, by run and place."""
    jumped = doubts.screened.doubtful(Space.POSITION, Why.JUMPED)
    found: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for run, place, block in zip(
        *(jumped[name].tolist() for name in ("run", "place", "offset_block")), strict=True
    ):
        found[run, place].append((block << BITS, (block << BITS) + 63))
    for one in doubts.jumped:
        found[one.run, one.place].append((one.first, one.last))
    ranges = {}
    for key, spans in found.items():
        ordered = np.array(sorted(spans), dtype=np.int64)
        # A range that begins later may end earlier, so each end is the highest so far.
        ranges[key] = ordered[:, 0], np.maximum.accumulate(ordered[:, 1])
    return ranges


class Follower:
    """The readers of one task, followed from batch to batch."""

    def __init__(self, jumped: Jumped) -> None:
        self._jumped = jumped
        self._trails: dict[int, Trail] = defaultdict(Trail)

    def steps(self, run: int, c: Columns) -> pa.RecordBatch:
        """Return the steps in doubt that end in this batch."""
        return _batch(run, *_in_doubt(run, self._trails[run].walk(c), self._jumped))

    def edges(self) -> Iterator[pa.RecordBatch]:
        for run, trail in self._trails.items():
            yield _batch(run, *trail.edges())


def across_tasks(edges: pa.Table, jumped: Jumped) -> pa.Table:
    """Return the steps in doubt from the last row of one task to the first row of the next."""
    c = {name: edges.column(name).to_numpy() for name in NAMES}
    lane = lanes({name: c[f"from_{name}"] for name in ("reader", "topic", "partition")})
    order = np.lexsort((c["to_t"], c["from_t"], lane, c["run"]))
    batches, one, other = [], np.array([0]), np.array([1])
    for before, after in pairwise(order):
        if (c["run"][before], lane[before]) == (c["run"][after], lane[after]):
            source = {name: c[f"to_{name}"][[before]] for name in COLUMNS}
            reached = {name: c[f"from_{name}"][[after]] for name in COLUMNS}
            run = int(c["run"][before])
            batches.append(_batch(run, *_in_doubt(run, Steps(source, reached, one, other), jumped)))
    return pa.Table.from_batches(batches, schema=STEPS)


def _in_doubt(run: int, steps: Steps, jumped: Jumped) -> tuple[Rows, Rows]:
    far = steps.jumps()
    over = _over_doubt(run, *steps.rows(far), jumped)
    return steps.rows(np.sort(np.r_[steps.backwards(), far[over]]))


def _over_doubt(run: int, source: Rows, reached: Rows, jumped: Jumped) -> Bools:
    """Mark the jumps that pass over a range in doubt."""
    over = np.zeros(len(source["t"]), dtype=np.bool_)
    places = place_of(source["topic"], source["partition"])
    for place in np.unique(places).tolist():
        if (run, place) not in jumped:
            continue
        firsts, lasts = jumped[run, place]
        mine = places == place
        # The last range that begins before the jump's end; it, or one before it, reaches into the jump.
        at = np.searchsorted(firsts, reached["offset"][mine], side="left") - 1
        over[mine] = (at >= 0) & (lasts[at] > source["offset"][mine])
    return over


def _batch(run: int, source: Rows, reached: Rows) -> pa.RecordBatch:
    rows = {"run": np.full(len(source["t"]), run, dtype=np.int64)}
    rows |= {f"from_{n}": source[n] for n in COLUMNS} | {f"to_{n}": reached[n] for n in COLUMNS}
    return pa.RecordBatch.from_arrays([pa.array(rows[name], pa.int64()) for name in NAMES], schema=STEPS)
