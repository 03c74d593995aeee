"""Readers in doubt: their steps from one delivery to the next one of a partition, and their commits. Pure numpy and Arrow.

A step is in doubt if it goes back, or if it may have left out a record. A task sees a part of a reader's deliveries, so steps
across tasks are found in the driver, twice: from the summaries of screening, to know whether a closer look is needed, and
from the rows at the edges of tasks, which the closer look picks, for the finders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from harness.reconcile.arrays import Columns, Ints, place_of
from harness.reconcile.screen.facts import Facts
from harness.reconcile.screen.reader_steps import COLUMNS, Rows, Steps, Trail, lanes
from harness.reconcile.screen.screen import Screened
from harness.reconcile.screen.spaces import Space, Summary
from harness.reconcile.select.wanted import EVERYTHING, Range, Ranges

# A step: the row that it comes from and the row that it reaches.
NAMES = ("run", *(f"from_{name}" for name in COLUMNS), *(f"to_{name}" for name in COLUMNS))
STEPS = pa.schema([(name, pa.int64()) for name in NAMES])


# --- by summaries ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class EdgeStep:
    """A step of a reader from the last row of one task to the first row of the next task."""

    run: int
    place: int
    source: int
    reached: int
    excused: bool

    @property
    def back(self) -> bool:
        return self.reached <= self.source

    @property
    def jumps(self) -> bool:
        return self.reached > self.source + 1 and not self.excused

    @property
    def range(self) -> Range:
        return Range(self.run, self.place, self.source + 1, self.reached - 1)


def edge_steps(s: Summary) -> Iterator[EdgeStep]:
    order = np.lexsort((s["first_t"], s["lane"], s["run"]))
    rows = [{name: int(values[i]) for name, values in s.items()} for i in order]
    for before, after in pairwise(rows):
        if (before["run"], before["lane"]) == (after["run"], after["lane"]):
            excused = before["last_generation"] != after["first_generation"]
            yield EdgeStep(
                before["run"], before["place_sum"], before["last_offset"], after["first_offset"], excused
            )
    for row in rows:
        if row["rows"] > 1:
            # Two tasks began at the same time, so their order is unknown: a step back and a jump over everything.
            place = row["place_sum"] // row["rows"]
            yield EdgeStep(row["run"], place, EVERYTHING, 0, False)
            yield EdgeStep(row["run"], place, -1, EVERYTHING, False)


@dataclass(frozen=True)
class Overcommit:
    """A commit beyond what the group had been given. `given`: 1 + the highest offset that it had got; 0: nothing yet."""

    run: int
    place: int
    reader: int
    t: int
    offset: int
    given: int


def overcommits(screened: Screened, facts: Facts) -> Iterator[Overcommit]:
    """Yield the commits of one run above a record that the group could read and had not been given by then."""
    for place, commits in facts.commits.items():
        given = _reached(screened.space(Space.GIVEN), place, len(commits.t))
        below = _reached(screened.space(Space.BELOW), place, len(commits.t))
        known = below[np.searchsorted(commits.offsets_sorted, commits.offset, side="right") - 1]
        for i in np.flatnonzero(known > given):
            which = (commits.reader[i], commits.t[i], commits.offset[i], given[i])
            yield Overcommit(facts.run, place, *map(int, which))


def _reached(s: Summary, place: int, count: int) -> Ints:
    """Return the highest next_offset of each commit and all before it.

    Of five commits, 1 and 3 have a row, with next_offset 5 and 4: 0 5 5 5 5.
    """
    mine = s["place"] == place
    highest = np.zeros(count, dtype=np.int64)
    highest[s["commit"][mine]] = s["next_offset"][mine]
    return np.maximum.accumulate(highest)


# --- by rows --------------------------------------------------------------------------------------


class Follower:
    """The readers of one task, followed from batch to batch. `jumped`: where readers may have left out a record."""

    def __init__(self, jumped: Ranges) -> None:
        self._jumped = jumped
        self._trails: dict[int, Trail] = defaultdict(Trail)

    def steps(self, run: int, c: Columns) -> pa.RecordBatch:
        """Return the steps in doubt that end in this batch."""
        return _batch(run, *_in_doubt(run, self._trails[run].walk(c), self._jumped))

    def edges(self) -> Iterator[pa.RecordBatch]:
        """Yield the first and the last row that the task saw of each reader and partition, like a step."""
        for run, trail in self._trails.items():
            yield _batch(run, *trail.edges())


def across_tasks(edges: pa.Table, jumped: Ranges) -> pa.Table:
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


def _in_doubt(run: int, steps: Steps, jumped: Ranges) -> tuple[Rows, Rows]:
    far = steps.jumps()
    source, reached = steps.rows(far)
    place = place_of(source["topic"], source["partition"])
    over = jumped.overlap(run, place, source["offset"] + 1, reached["offset"] - 1)
    return steps.rows(np.sort(np.r_[steps.backwards(), far[over]]))


def _batch(run: int, source: Rows, reached: Rows) -> pa.RecordBatch:
    rows = {"run": np.full(len(source["t"]), run, dtype=np.int64)}
    rows |= {f"from_{n}": source[n] for n in COLUMNS} | {f"to_{n}": reached[n] for n in COLUMNS}
    return pa.RecordBatch.from_arrays([pa.array(rows[name], pa.int64()) for name in NAMES], schema=STEPS)
