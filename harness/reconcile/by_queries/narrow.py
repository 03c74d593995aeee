"""Sifting: the few rows that were picked are screened again, each message and each position by itself.

Screening tells of 64 at a time that something differs among them; here the same kernels tell which. They get numbers that
are 64 times as large, so that each block of theirs holds one. Most of what was picked is sound then, and what finders
cost follows what they are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.reconcile import blocks, kernels
from harness.reconcile.blocks import BITS, Columns, Facts, Ints, Space, Summary, Why
from harness.reconcile.screen import READ, Screened, by_runs
from harness.reconcile.select.related_rows import STRANGERS, claimed_place, ours
from harness.reconcile.select.row_keys import Kind, Wanted, doubted
from harness.reconcile.steps import Trail


def sift(picked: Mapping[str, pa.Table], screened: Screened, facts: Sequence[Facts], sure: Wanted) -> Wanted:
    """What of the picked rows is still wanted: what is `sure`, and messages and positions that are not sound themselves."""
    single = {
        fact.run: replace(
            fact,
            attempted=fact.attempted << BITS,
            commits={},
            observers={number: one.with_a_block_each() for number, one in fact.observers.items()},
        )
        for fact in facts
    }
    wanted = Wanted(dict(sure.keys))
    messages = _doubtful(picked, "by_message", Space.MESSAGE, single)
    positions = _doubtful(picked, "by_position", Space.POSITION, single)
    wanted.add(Kind.MESSAGE, messages["run"], messages["a"], messages["b"])
    wanted.add(Kind.POSITION, positions["run"], positions["a"], positions["b"])
    wanted.add(Kind.POSITION, *_jumped_over(screened))
    moved = doubted(Kind.MESSAGE, messages, Why.PLACE)
    strange = doubted(Kind.POSITION, positions, STRANGERS)
    for name, table in picked.items():
        for run, c in by_runs(table.to_batches(), READ[name][1]):
            place, offset = claimed_place(name, c), c["offset"]
            here = moved.holds(run, Kind.MESSAGE, c["session"], c["seq"]) & (offset >= 0)
            wanted.add(Kind.POSITION, _all(run, here), place[here], offset[here])
            if name == "deliveries":
                there = strange.holds(run, Kind.POSITION, place, offset) & ours(c)
                wanted.add(Kind.MESSAGE, _all(run, there), c["session"][there], c["seq"][there])
    return wanted


def _all(run: int, chosen: blocks.Bools) -> Ints:
    return np.full(int(chosen.sum()), run, dtype=np.int64)


def _doubtful(picked: Mapping[str, pa.Table], mark: str, space: Space, facts: Mapping[int, Facts]) -> Summary:
    """Messages (or positions) all rows of which were picked and that are not sound."""
    parts = []
    for name, table in picked.items():
        mine = table.filter(pc.field(mark)).combine_chunks()
        kernel, columns = READ[name]
        for run, c in by_runs(mine.to_batches(), columns):
            args = (Trail(),) if kernel is kernels.screen_deliveries else ()
            made = kernel(_single(c), facts[run], *args)
            chosen = made["space"] == space
            parts.append({column: values[chosen] for column, values in made.items()})
    if not parts:
        return {column: np.zeros(0, dtype=np.int64) for column in blocks.SUMMARY}
    rows = blocks.merged(blocks.joined(parts))
    rows["m4"][:] = 0  # steps between rows that happened to be picked say nothing
    unsound = blocks.weigh(rows) != 0
    return {column: values[unsound] for column, values in rows.items()}


def _single(c: Columns) -> Columns:
    """With a block for each message and for each position; -1 stays below 0."""
    return {**c, "seq": c["seq"] << BITS, "offset": c["offset"] << BITS}


def _jumped_over(screened: Screened) -> tuple[Ints, Ints, Ints]:
    """Run, place and offset of records that a reader jumped over and could have read."""
    s = screened.doubtful(Space.POSITION)
    over = blocks.jumped_over(s)[:, None].view(np.uint64) >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    row, bit = np.nonzero(over)
    return s["run"][row], s["a"][row], (s["b"][row] << BITS) + bit
