"""Narrowing: the few rows that were picked are screened again, each message and each position by itself.

Screening sees of 64 at a time that something differs among them; here the same kernels see which. They get numbers that
are 64 times as large, so that each block of theirs holds one. Most of what was picked is sound then, and what finders
cost follows what they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from harness.reconcile import blocks, kernels
from harness.reconcile.blocks import BITS, Bools, Columns, Facts, Ints, Space, Summary, Why
from harness.reconcile.pieces import Bag
from harness.reconcile.schema import LARGE
from harness.reconcile.screen import READ, Screened, by_runs
from harness.reconcile.select.related_rows import NEEDED, STRANGERS, claimed_place, ours
from harness.reconcile.select.row_keys import Kind, Wanted, doubted
from harness.reconcile.steps import Trail


def narrow(
    messages: Bag, positions: Bag, screened: Screened, facts: Sequence[Facts], sure: Wanted
) -> tuple[Bag, Bag]:
    """The rows of both subjects that are still wanted: what is `sure`, and messages and positions that are not sound."""
    wanted = _still_wanted(messages, positions, screened, facts, sure)
    at_positions = {name: _filtered(name, positions[name], wanted.position) for name in LARGE}
    # Records that are at no position in doubt any more may still be needed as records.
    left = _filtered("log", positions["log"], lambda *at: wanted.record(*at) & ~wanted.position(*at))
    records = pa.concat_tables([positions["records"], left])
    of_messages = {name: _filtered(name, messages[name], wanted.message, by_message=True) for name in LARGE}
    return {**messages, **of_messages}, {**positions, **at_positions, "records": records}


def _filtered(
    name: str, table: pa.Table, wanted: Callable[[int, Ints, Ints], Bools], *, by_message: bool = False
) -> pa.Table:
    kept = []
    for batch in table.to_batches():
        runs, chosen = batch.column("run").to_numpy(), np.zeros(batch.num_rows, dtype=np.bool_)
        for run, c in by_runs([batch], NEEDED[name][:5]):
            at = (c["session"], c["seq"]) if by_message else (claimed_place(name, c), c["offset"])
            chosen[runs == run] = wanted(run, *at)
        kept.append(batch.filter(pa.array(chosen)))
    return pa.Table.from_batches(kept, schema=table.schema)


def _still_wanted(
    messages: Bag, positions: Bag, screened: Screened, facts: Sequence[Facts], sure: Wanted
) -> Wanted:
    single = {
        fact.run: replace(
            fact,
            attempted=fact.attempted << BITS,
            commits={},
            observers={number: one.with_a_block_each() for number, one in fact.observers.items()},
        )
        for fact in facts
    }
    wanted = sure.copy()
    unsound_messages = _unsound(messages, Space.MESSAGE, single)
    unsound_positions = _unsound(positions, Space.POSITION, single)
    for kind, s in ((Kind.MESSAGE, unsound_messages), (Kind.POSITION, unsound_positions)):
        wanted.add(kind, s["run"], s["a"], s["b"])
    wanted.add(Kind.POSITION, *_jumped_over(screened))
    moved = doubted(Kind.MESSAGE, unsound_messages, Why.PLACE)
    strange = doubted(Kind.POSITION, unsound_positions, STRANGERS)
    for name in LARGE:
        for run, c in by_runs(messages[name].to_batches(), READ[name][1]):
            here = moved.holds(run, Kind.MESSAGE, c["session"], c["seq"]) & (c["offset"] >= 0)
            wanted.add(Kind.POSITION, _all(run, here), claimed_place(name, c)[here], c["offset"][here])
    for run, c in by_runs(positions["deliveries"].to_batches(), READ["deliveries"][1]):
        there = strange.holds(run, Kind.POSITION, claimed_place("deliveries", c), c["offset"]) & ours(c)
        wanted.add(Kind.MESSAGE, _all(run, there), c["session"][there], c["seq"][there])
    return wanted


def _all(run: int, chosen: Bools) -> Ints:
    return np.full(int(chosen.sum()), run, dtype=np.int64)


def _unsound(bag: Bag, space: Space, facts: Mapping[int, Facts]) -> Summary:
    """Messages (or positions) that are not sound; all rows of each are in the bag."""
    parts = []
    for name in LARGE:
        kernel, columns = READ[name]
        for run, c in by_runs(bag[name].combine_chunks().to_batches(), columns):
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
