"""Screening: one pass of Spark over a ledger that counts what was compared and finds the blocks that need a closer look.

Spark distributes the tables, and kernels (harness.reconcile.screen.kernels) turn batches of rows into block summaries
inside its tasks. The summaries of each block are then merged: of few records in the driver, of many in tasks again. Totals,
times, and the blocks that are not sound are kept. Their size depends on the number of doubtful blocks and the length of the
run, never on the number of records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from harness.reconcile.arrays import Bools, Ints, mixed
from harness.reconcile.screen import kernels, reader_steps, summaries
from harness.reconcile.screen.facts import Facts
from harness.reconcile.screen.spaces import Space, Summary, Why, named
from harness.reconcile.screen.summaries import Count
from harness.reconcile.seal.schema import EFFECTS, SCHEMAS
from harness.reconcile.spark.pieces import ALL_TOGETHER, PIECE, Shares, Subject, each_table, pieces
from harness.reconcile.spark.sizes import USUAL, Sizes
from harness.reconcile.spark.source import Asked, Batch, Source, Work

# Summaries of many records are merged in shares, all rows of one block in one share. Each batch makes a piece for each
# share, so too many shares cost time.
RECORDS_A_SHARE, FEWEST_SHARES, MOST_SHARES = 1 << 22, 8, 1 << 10
_NEIGHBOURS = 10  # 2 ** 10 neighbouring blocks are in one share
ANY_REASON = ~Why(0)
Kernel = Callable[..., Summary]

# The columns that each kernel reads; null becomes -1.
READ: Mapping[str, tuple[Kernel, tuple[str, ...]]] = {
    "attempts": (
        kernels.screen_attempts,
        ("session", "seq", "t", "topic", "partition", "key", "txn", "outcome", "t_outcome", "told_partition", "offset", "phase"),
    ),
    "log": (
        kernels.screen_log,
        ("topic", "partition", "offset", "session", "seq", "txn", "key", "intended_topic", "intended_partition", "flags",
         "uncommitted", "committed", "promised", "passed"),
    ),
    "deliveries": (
        kernels.screen_deliveries,
        ("topic", "partition", "offset", "session", "seq", "txn", "key", "flags", "t", "reader", "generation"),
    ),
}  # fmt: skip
READ_EFFECTS = (kernels.screen_effects, tuple(name for name in SCHEMAS[EFFECTS].names if name != "run"))


@dataclass(frozen=True)
class Screened:
    """The result of screening one run or many: merged summary rows, and why each is not sound."""

    rows: Summary
    why: Ints  # of each row, as bits of Why; 0: sound

    def of(self, run: int) -> Screened:
        if list(self._by_run) == [run]:
            return self
        mine = self._by_run.get(run, np.zeros(0, dtype=np.int64))
        return Screened({name: values[mine] for name, values in self.rows.items()}, self.why[mine])

    @cached_property
    def _by_run(self) -> dict[int, Ints]:
        """The row numbers of each run: found once, since there may be hundreds of runs."""
        order = np.argsort(self.rows["run"], kind="stable")
        runs, starts = np.unique(self.rows["run"][order], return_index=True)
        return dict(zip(runs.tolist(), np.split(order, starts[1:]), strict=True))

    def space(self, space: Space) -> Summary:
        """Return the rows of one space, with columns named as in COLUMNS[space]."""
        return self._chosen(space, self.rows["space"] == space)

    def doubtful(self, space: Space, why: Why = ANY_REASON) -> Summary:
        """Return the rows of one space that are not sound for one of these reasons, with named columns."""
        return self._chosen(space, (self.rows["space"] == space) & ((self.why & why) != 0))

    def _chosen(self, space: Space, chosen: Bools) -> Summary:
        return {name: values[chosen] for name, values in named(space, self.rows).items()}

    def reasons(self, space: Space) -> Why:
        """Return all reasons why blocks of this space are not sound."""
        return Why(int(np.bitwise_or.reduce(self.why[self.rows["space"] == space], initial=0)))

    def count(self, count: Count) -> int:
        return int(self._total(count)["number"].sum())

    def highest(self, count: Count) -> int | None:
        highest = self._total(count)["highest"]
        return int(highest.max()) if len(highest) else None

    def _total(self, count: Count) -> Summary:
        totals = self.space(Space.TOTAL)
        chosen = totals["count"] == count
        return {name: values[chosen] for name, values in totals.items()}


def screen(source: Source, facts: Sequence[Facts], *, records: int, sizes: Sizes = USUAL) -> Screened:
    """Screen attempts, log, effects and deliveries of the runs of `facts`, which have about `records` rows."""
    by_run = {fact.run: fact for fact in facts}
    count = min(MOST_SHARES, max(FEWEST_SHARES, records // RECORDS_A_SHARE))
    shares = ALL_TOGETHER if records <= sizes.merged_in_driver else Shares(count, _NEIGHBOURS)
    asked = {
        name: Asked(columns, _summarising(kernel, columns, by_run, shares))
        for name, (kernel, columns) in {**READ, EFFECTS: READ_EFFECTS}.items()
    }
    packed = source.each(asked, PIECE)
    if shares.count > 1:
        packed = packed.groupBy("share").applyInArrow(_merge_share, PIECE)
    rows = _joined(packed.toArrow())
    rows = rows if shares.count > 1 else _kept_of(summaries.merged(rows))
    rows = summaries.joined([rows, *(_counted_here(rows, fact) for fact in facts)])
    return Screened(rows, summaries.weigh(rows))


def _merge_share(packed: pa.Table) -> pa.Table:
    kept = _kept_of(summaries.merged(_joined(packed)))
    return pa.Table.from_batches(list(_packed(kept, ALL_TOGETHER)), schema=packed.schema)


def _packed(rows: Summary, shares: Shares) -> Iterator[pa.RecordBatch]:
    """Pack summaries into pieces. Columns of zeros are left out: most kernels fill half of them."""
    columns = {name: values for name, values in rows.items() if name in summaries.KEYS or values.any()}
    share = shares.of(rows["run"], mixed(rows["space"], rows["a"]), rows["b"])
    yield from pieces(Subject.RESULT, "summaries", pa.RecordBatch.from_pydict(columns), share)


def _joined(packed: pa.Table) -> Summary:
    parts = []
    for rows in each_table(packed.to_batches()):
        none, there = np.zeros(rows.num_rows, dtype=np.int64), set(rows.column_names)
        parts.append({name: rows[name].to_numpy() if name in there else none for name in summaries.SUMMARY})
    empty = {name: np.zeros(0, dtype=np.int64) for name in summaries.SUMMARY}
    return summaries.joined([empty, *parts])


def arrays_of(frame: DataFrame) -> Summary:
    """Return all rows of a table of whole numbers."""
    table = frame.toArrow()
    return {name: table.column(name).to_numpy().astype(np.int64, copy=False) for name in table.column_names}


def _counted_here(rows: Summary, facts: Facts) -> Summary:
    """Count what no task can: commits, assignments, and steps of readers from one task to the next."""
    edges, reading = (rows["run"] == facts.run) & (rows["space"] == Space.READING), named(Space.READING, rows)
    between = int(reading["rows"][edges].sum()) - len(np.unique(reading["lane"][edges]))
    commits = sum(len(commits.t) for commits in facts.commits.values())
    counts = {Count.STEPS: between, Count.COMMITS: commits, Count.ASSIGNED: facts.owned.assigned}
    return summaries.totals(facts.run, counts)


def _summarising(kernel: Kernel, columns: Sequence[str], by_run: Mapping[int, Facts], shares: Shares) -> Work:
    """Return the work of a task: the kernel on each batch.

    With deliveries, it follows each reader from batch to batch and reports its first and last row at the end.
    """
    follows = kernel is kernels.screen_deliveries

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        trails: dict[int, reader_steps.Trail] = defaultdict(reader_steps.Trail)
        for run, c in by_runs(batches, columns):
            trail = (trails[run],) if follows else ()
            yield from _packed(kernel(c, by_run[run], *trail), shares)
        for run, seen in trails.items():
            yield from _packed(reader_steps.edges(run, seen), shares)

    return work


def by_runs(batches: Iterable[Batch], columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of each run in each batch, as the arrays that kernels take."""
    for batch in batches:
        if not batch.num_rows:
            continue
        run = _column(batch, "run")
        c = {name: _column(batch, name) for name in columns}
        if run.min() == run.max():
            yield int(run[0]), c
            continue
        for number in np.unique(run).tolist():
            mine = run == number
            yield number, {name: values[mine] for name, values in c.items()}


def _column(batch: Batch, name: str) -> Any:
    column = batch.column(name)
    if pa.types.is_boolean(column.type):
        return column.to_numpy(zero_copy_only=False).astype(np.bool_)
    if column.null_count:
        column = column.fill_null(-1)
    return column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def _kept_of(rows: Summary) -> Summary:
    """Count the sound blocks and drop them; keep everything else."""
    unsound = summaries.weigh(rows) != 0
    in_blocks = np.isin(rows["space"], (Space.MESSAGE, Space.POSITION, Space.EFFECT))
    passing = {name: values[~in_blocks | unsound] for name, values in rows.items()}
    counts = []
    for run in np.unique(rows["run"]).tolist():
        mine = rows["run"] == run
        counts.append(summaries.counted({name: values[mine] for name, values in rows.items()}))
    return summaries.joined([passing, *counts])
