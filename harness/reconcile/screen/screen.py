"""Screening: one pass of Spark over a ledger that says how much was compared and which blocks need a closer look.

Spark distributes the tables, kernels (harness.reconcile.screen.kernels) turn batches of rows into block summaries inside its
tasks, and the summaries of each block are merged: of few records in the driver, of many in tasks again. What is kept
are totals, times, and the blocks that are not sound: it follows the number of doubtful blocks and the length of the
run, never the number of records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from harness.contracts import Outcome
from harness.ledger.transform import Transform
from harness.reconcile.arrays import Ints, mixed, place_of
from harness.reconcile.screen import kernels, reader_steps, summaries
from harness.reconcile.screen.observers import Observer
from harness.reconcile.screen.partition_owners import NOBODY, ownership
from harness.reconcile.screen.summaries import Commits, Count, Facts, Fate, Space, Summary, Why
from harness.reconcile.screen.transaction_fates import told
from harness.reconcile.seal.readings import all_effects_read
from harness.reconcile.seal.schema import EFFECTS, SCHEMAS
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.spark.pieces import ALL_TOGETHER, PIECE, Shares, Subject, each_table, pieces
from harness.reconcile.spark.source import Asked, Batch, Source, Work

MERGED_HERE = 6_000_000  # records whose summaries are merged in the driver: some megabytes
# Of more, in shares; rows of one block are in one share. A piece for each share and batch: too many shares cost time.
RECORDS_A_SHARE, FEWEST_SHARES, MOST_SHARES = 1 << 22, 8, 1 << 10
_NEIGHBOURS = 10  # bits of block numbers that stay together in a share
Kernel = Callable[..., Summary]

# The columns that each kernel reads; null is told as -1.
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
    """What screening found, of one run or of many: merged summary rows, those that are not sound marked."""

    rows: Summary
    why: Ints  # of each row, as bits of blocks.Why

    def of(self, run: int) -> Screened:
        if list(self._by_run) == [run]:
            return self
        mine = self._by_run.get(run, np.zeros(0, dtype=np.int64))
        return Screened({name: values[mine] for name, values in self.rows.items()}, self.why[mine])

    @cached_property
    def _by_run(self) -> dict[int, Ints]:
        """Which rows belong to each run: found once, since there may be hundreds of runs."""
        order = np.argsort(self.rows["run"], kind="stable")
        runs, starts = np.unique(self.rows["run"][order], return_index=True)
        return dict(zip(runs.tolist(), np.split(order, starts[1:]), strict=True))

    def space(self, space: Space) -> Summary:
        chosen = self.rows["space"] == space
        return {name: values[chosen] for name, values in self.rows.items()}

    def doubtful(self, space: Space) -> Summary:
        chosen = (self.rows["space"] == space) & (self.why != 0)
        return {name: values[chosen] for name, values in self.rows.items()}

    def reasons(self, space: Space) -> Why:
        """Why blocks of this space are not sound, all together."""
        return Why(int(np.bitwise_or.reduce(self.why[self.rows["space"] == space], initial=0)))

    def count(self, count: Count) -> int:
        return int(self._total(count)["n0"].sum())

    def highest(self, count: Count) -> int | None:
        x = self._total(count)["x"]
        return int(x.max()) if len(x) else None

    def _total(self, count: Count) -> Summary:
        totals = self.space(Space.TOTAL)
        chosen = totals["a"] == count
        return {name: values[chosen] for name, values in totals.items()}


def screen(source: Source, facts: Sequence[Facts], *, records: int) -> Screened:
    """Screen attempts, log and deliveries of the runs that `facts` tell of; `records` are their rows, about."""
    by_run = {fact.run: fact for fact in facts}
    count = min(MOST_SHARES, max(FEWEST_SHARES, records // RECORDS_A_SHARE))
    shares = ALL_TOGETHER if records <= MERGED_HERE else Shares(count, _NEIGHBOURS)
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
    """Summaries as pieces. Columns without any value are left out: most kernels fill half of them."""
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
    """All rows of a table of whole numbers."""
    table = frame.toArrow()
    return {name: table.column(name).to_numpy().astype(np.int64, copy=False) for name in table.column_names}


def _counted_here(rows: Summary, facts: Facts) -> Summary:
    """What no task can count: commits, assignments, and steps of readers from one task to the next."""
    edges = (rows["run"] == facts.run) & (rows["space"] == Space.READING)
    between = int(rows["n0"][edges].sum()) - len(np.unique(rows["a"][edges]))
    commits = sum(len(commits.t) for commits in facts.commits.values())
    return summaries.joined(
        [
            summaries.total(facts.run, Count.STEPS, between),
            summaries.total(facts.run, Count.COMMITS, commits),
            summaries.total(facts.run, Count.ASSIGNED, facts.owned.assigned),
        ]
    )


def _summarising(kernel: Kernel, columns: Sequence[str], by_run: Mapping[int, Facts], shares: Shares) -> Work:
    """Deliveries: a task follows each reader from batch to batch and reports at its end where it began and ended."""
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
    """The rows of each run in each batch, as the arrays that kernels take."""
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
    """Sound blocks are counted and let go; everything else passes."""
    unsound = summaries.weigh(rows) != 0
    in_blocks = np.isin(rows["space"], (Space.MESSAGE, Space.POSITION, Space.EFFECT))
    passing = {name: values[~in_blocks | unsound] for name, values in rows.items()}
    counts = []
    for run in np.unique(rows["run"]).tolist():
        mine = rows["run"] == run
        counts.append(summaries.counted({name: values[mine] for name, values in rows.items()}))
    return summaries.joined([passing, *counts])


def facts(small: Mapping[str, pa.Table], sealed: Sequence[Sealed]) -> list[Facts]:
    """What the kernels have to know of each run."""
    fates, commits = told_fates(small["transactions"]), _commits(small["commits"])
    owned = ownership(small["assignments"])
    bounds = small["bounds"].to_pylist()
    none = np.zeros(0, dtype=np.int64)
    made = []
    for one in sealed:
        read = [row for row in bounds if row["run"] == one.run]
        # Effects that may stand where nobody read, or that were deleted, are not asked for.
        transform = Transform(**one.transform) if one.transform and all_effects_read(read) else None
        transactions, fate, asked = fates.get(one.run, (none, none, none))
        sessions = np.array(sorted((s.session, s.attempted) for s in one.sessions), dtype=np.int64)
        sessions = sessions.reshape(-1, 2)
        made.append(
            Facts(
                one.run, one.zero_ns, one.group_isolation == "read_committed", one.topic_unchanged,
                transactions, fate, asked, sessions[:, 0].copy(), sessions[:, 1].copy(),
                commits.get(one.run, {}), transform, owned.get(one.run, NOBODY),
                {observed.reader: Observer.of(observed) for observed in one.observers},
                summaries.bucket_ns(max((event["t"] for event in one.events), default=0) - one.zero_ns),
                _whole(read),
            )
        )  # fmt: skip
    return made


def _whole(bounds: Sequence[Mapping[str, Any]]) -> npt.NDArray[np.bool_]:
    """As in Facts."""
    shape = (
        max((row["topic"] for row in bounds), default=0) + 1,
        max((row["partition"] for row in bounds), default=0) + 2,
    )
    whole = np.zeros(shape, dtype=np.bool_)
    for row in bounds:
        whole[row["topic"], row["partition"] + 1] = row["whole"]
    for topic in {row["topic"] for row in bounds}:
        whole[topic, 0] = all(row["whole"] for row in bounds if row["topic"] == topic)
    return whole


def told_fates(transactions: pa.Table) -> dict[int, tuple[Ints, Ints, Ints]]:
    """Of each run, its transactions as session << 32 | txn, sorted, what the events alone tell of each, and when it
    was asked to commit."""
    c = _arrays(told(transactions))
    fate = np.where(
        c["committed"],
        Fate.COMMITTED,
        np.where(c["aborted"] | ~c["asked"], Fate.ABORTED, Fate.OPEN),
    )
    # To read what was aborted is another matter than to read too early.
    asked = np.where(fate == Fate.ABORTED, 0, c["asked_at"])
    fates = {}
    for run in np.unique(c["run"]).tolist():
        mine = c["run"] == run
        packed = c["session"][mine] << 32 | c["txn"][mine]
        order = np.argsort(packed)
        fates[run] = packed[order], fate[mine][order].astype(np.int64), asked[mine][order].astype(np.int64)
    return fates


def _commits(commits: pa.Table) -> dict[int, dict[int, Commits]]:
    """Acked commits of each run, by place."""
    c = _arrays(commits.select(["run", "topic", "partition", "t", "offset", "reader", "outcome"]))
    acked = c["outcome"] == Outcome.ACKED
    c = {name: values[acked].astype(np.int64) for name, values in c.items()}
    place = place_of(c["topic"], c["partition"])
    order = np.lexsort((c["t"], place, c["run"]))
    keys = np.stack([c["run"][order], place[order]])
    starts = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)]) if len(order) else order
    found: dict[int, dict[int, Commits]] = defaultdict(dict)
    for mine in np.split(order, starts[1:]) if len(order) else []:
        offsets = c["offset"][mine]
        found[int(c["run"][mine[0]])][int(place[mine[0]])] = Commits(
            c["t"][mine], offsets, c["reader"][mine], np.sort(offsets)
        )
    return found


def _arrays(table: pa.Table) -> dict[str, Any]:
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
