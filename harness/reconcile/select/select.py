"""The closer look: rows that screening could not call sound, and only those, as pieces for the finders.

Finders ask about positions (all rows at one) and about messages (all rows that name one), so each picked row goes to the
subjects that it was picked for. Two passes over the tables, by kernels like those of screening: the first
(harness.reconcile.select.related_rows) finds what else belongs to what is in doubt, the second picks the rows. A block is
picked whole, with the sound neighbours of what is wrong in it: finders find nothing about those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from harness.reconcile.blocks import (
    BITS,
    Bools,
    Columns,
    Facts,
    Fate,
    Ints,
    Space,
    mixed,
    place_of,
    unique_pairs,
)
from harness.reconcile.fates import TRANSACTION
from harness.reconcile.owners import Shared
from harness.reconcile.pieces import ALL_TOGETHER, PIECE, Bag, Shares, Subject, pieces
from harness.reconcile.schema import EFFECTS, LARGE, SCHEMAS
from harness.reconcile.screen import arrays_of, by_runs
from harness.reconcile.select.across_tasks import Doubts, Overcommit
from harness.reconcile.select.doubtful_steps import STEPS, Follower, Jumped, across_tasks, jumped_of
from harness.reconcile.select.related_rows import HUNTED, NEEDED, Hunt, claimed_place, ours
from harness.reconcile.select.row_keys import Kind, Wanted
from harness.reconcile.source import Source, Work
from harness.reconcile.steps import COLUMNS as STEP_COLUMNS
from harness.transform import INPUT

_INPUT = ("topic", "partition", "offset", "session", "seq")
_PLACE = ("topic", "partition")
_RECORD = ["run", *_INPUT, "flags", "uncommitted", "committed"]
# What finders get. `records` are rows of the log that steps and commits of readers are compared with; `inputs` and `effects`
# are of pipelines; `overcommits` and `shared` were found while screening.
PICKED: Mapping[str, pa.Schema] = {
    **{name: SCHEMAS[name] for name in (*LARGE, EFFECTS)},
    "steps": STEPS,
    "inputs": pa.schema([(name, pa.int64()) for name in ("run", *_INPUT, "effects")]),
    "records": pa.schema([SCHEMAS["log"].field(name) for name in _RECORD]),
    "overcommits": pa.schema(
        [(name, pa.int64()) for name in (*(f.name for f in fields(Overcommit)), *_PLACE)]
    ),
    "shared": pa.schema([(name, pa.int64()) for name in (*(f.name for f in fields(Shared)), *_PLACE)]),
}


def related(source: Source, doubts: Doubts) -> Wanted:
    """The keys of all rows that are wanted: doubtful blocks, and what else belongs to what is in doubt."""
    wanted = Wanted()
    for kind, space in ((Kind.MESSAGES, Space.MESSAGE), (Kind.POSITIONS, Space.POSITION)):
        s = doubts.screened.doubtful(space)
        wanted.add(kind, s["run"], s["a"], s["b"])
    hunt = Hunt.of(doubts)
    if hunt:
        found = arrays_of(source.each({name: (NEEDED[name], hunt.work(name)) for name in LARGE}, HUNTED))
        for kind in Kind:
            mine = found["kind"] == kind
            wanted.add(kind, *(found[name][mine] for name in ("run", "x", "y")))
    return wanted


def with_all_tables(bag: Bag) -> dict[str, pa.Table]:
    """The bag with an empty table for each that has no rows in doubt. Types are ours: Spark's own reader has others."""
    tables = dict(bag)
    for name, schema in PICKED.items():
        tables[name] = bag[name].select(schema.names).cast(schema) if name in bag else schema.empty_table()
    return tables


@dataclass(frozen=True)
class Picker:
    """Picks the wanted rows of each table, and lists steps and effects in doubt, in one pass over all tables."""

    wanted: Wanted
    jumped: Jumped | None  # None: no step of a reader is in doubt
    ranges: bool  # records between two offsets are asked for, by steps or commits
    effects: Wanted  # blocks of inputs whose effects are in doubt
    facts: Mapping[int, Facts]
    shares: Shares

    @classmethod
    def of(
        cls, wanted: Wanted, doubts: Doubts, facts: Sequence[Facts], shares: Shares = ALL_TOGETHER
    ) -> Picker:
        effects, s = Wanted(), doubts.screened.doubtful(Space.EFFECT)
        effects.add(Kind.POSITIONS, s["run"], s["a"], s["b"])
        jumped = jumped_of(doubts) if doubts.about_steps else None
        ranges = jumped is not None or bool(doubts.overcommits)
        return cls(wanted, jumped, ranges, effects, {fact.run: fact for fact in facts}, shares)

    def pick(self, source: Source) -> Any:
        """The pieces, as a DataFrame of Spark."""
        tables = [*LARGE, EFFECTS] if self.effects.blocks else LARGE
        columns = {name: [column for column in SCHEMAS[name].names if column != "run"] for name in tables}
        return source.each({name: (columns[name], self.work(name)) for name in tables}, PIECE)

    def work(self, table: str) -> Work:
        return self._effects if table == EFFECTS else lambda batches: self._rows(table, batches)

    def _rows(self, table: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        follower = Follower(self.jumped) if table == "deliveries" and self.jumped is not None else None
        for batch in batches:
            for run, rows, c in _by_runs(batch, NEEDED[table][:5]):  # which message it is and where it is
                place = claimed_place(table, c)
                messages = self.wanted.message(run, c["session"], c["seq"])
                positions = self.wanted.position(run, place, c["offset"])
                by_message = self.shares.of(run, c["session"], c["seq"])
                by_position = self.shares.of(run, place, c["offset"])
                yield from _taken(Subject.MESSAGES, table, rows, messages, by_message)
                yield from _taken(Subject.POSITIONS, table, rows, positions, by_position)
                if table == "log" and self.ranges:
                    records = rows.select(_RECORD)
                    yield from _taken(
                        Subject.STEPS, "records", records, positions, self.shares.of(run, place)
                    )
            if table == "log" and self.effects.blocks:
                yield from self._inputs(batch)
            if table != "attempts":
                yield from self._proven(table, batch)
            if follower is not None:
                for run, c in by_runs([batch], STEP_COLUMNS):
                    yield from self._at(
                        Subject.STEPS, "steps", follower.steps(run, c), "to_topic", "to_partition"
                    )
        if follower is not None:
            for edges in follower.edges():
                yield from pieces(Subject.FIRST, "edges", edges)

    def _proven(self, table: str, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Transactions of unknown end that a read_committed reader got a record of (E2)."""
        if not any((fact.fates == Fate.OPEN).any() for fact in self.facts.values()):
            return
        reads = "committed" if table == "log" else "reader"
        for run, c in by_runs([batch], ("session", "txn", "flags", reads)):
            facts = self.facts[run]
            committed = c[reads] if table == "log" else reads_committed(c["reader"], facts)
            proven = committed & ours(c) & (c["txn"] > 0)
            proven[proven] = facts.fate_of(c["session"][proven], c["txn"][proven]) == Fate.OPEN
            session, txn, _ = unique_pairs(c["session"][proven], c["txn"][proven])
            rows = (np.full(len(session), run, dtype=np.int64), session, txn)
            yield from pieces(
                Subject.FIRST, "proven", pa.RecordBatch.from_arrays(list(map(pa.array, rows)), TRANSACTION)
            )

    def _inputs(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Inputs of pipelines in doubtful blocks, with how many effects each has to have."""
        for run, c in by_runs([batch], (*_INPUT, "passed", "flags")):
            transform, place = self.facts[run].transform, place_of(c["topic"], c["partition"])
            mine = c["passed"] & (c["topic"] == INPUT) & ours(c)
            mine &= self.effects.holds(run, Kind.POSITIONS, place, c["offset"] >> BITS)
            if transform is not None and mine.any():
                rows: dict[str, Any] = {"run": np.full(int(mine.sum()), run, dtype=np.int64)}
                rows |= {name: c[name][mine] for name in _INPUT}
                rows["effects"] = transform.effects(rows["session"], rows["seq"])
                made = pa.RecordBatch.from_pydict(rows)
                yield from self._at(Subject.POSITIONS, "inputs", made, "topic", "partition", "offset")

    def _effects(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Effects of inputs in doubtful blocks."""
        for run, c in by_runs(batches, [name for name in SCHEMAS[EFFECTS].names if name != "run"]):
            place = place_of(c["origin_topic"], c["origin_partition"])
            mine = self.effects.holds(run, Kind.POSITIONS, place, c["origin_offset"] >> BITS)
            rows = {"run": np.full(int(mine.sum()), run, dtype=np.int64)}
            rows |= {name: values[mine] for name, values in c.items()}
            made = pa.RecordBatch.from_pydict(rows)
            origin = ("origin_topic", "origin_partition", "origin_offset")
            yield from self._at(Subject.POSITIONS, EFFECTS, made, *origin)

    def _at(
        self,
        subject: Subject,
        name: str,
        rows: pa.RecordBatch,
        topic: str,
        partition: str,
        offset: str | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Rows by the share of their partition, or of their position if they have an offset."""
        place = place_of(rows.column(topic).to_numpy(), rows.column(partition).to_numpy())
        within = None if offset is None else rows.column(offset).to_numpy()
        yield from pieces(subject, name, rows, self.shares.of(rows.column("run").to_numpy(), place, within))

    def found_here(self, doubts: Doubts, edges: pa.Table | None) -> Iterator[pa.RecordBatch]:
        """Pieces of what the driver found: commits beyond what the group was given, partitions with two owners, and steps from one
        task to the next."""
        found: dict[str, Sequence[Any]] = {"overcommits": doubts.overcommits, "shared": doubts.shared}
        for name, rows in found.items():
            listed = [
                {**vars(one), "topic": one.place >> 32, "partition": one.place & 0xFFFF_FFFF} for one in rows
            ]
            made = pa.Table.from_pylist(listed, schema=PICKED[name])
            for batch in made.to_batches():
                yield from self._at(Subject.STEPS, name, batch, "topic", "partition")
        if edges is not None and self.jumped is not None:
            for batch in across_tasks(edges, self.jumped).combine_chunks().to_batches():
                yield from self._at(Subject.STEPS, "steps", batch, "to_topic", "to_partition")


def _by_runs(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch, Columns]]:
    """The rows of each run, whole and as arrays of these columns."""
    runs = batch.column("run").to_numpy()
    for run, c in by_runs([batch], columns):
        rows = batch if len(c["offset"]) == batch.num_rows else batch.filter(pa.array(runs == run))
        yield run, rows, c


def _taken(
    subject: Subject, name: str, rows: pa.RecordBatch, chosen: Bools, share: Ints | None
) -> Iterator[pa.RecordBatch]:
    at = np.flatnonzero(chosen)
    if len(at):
        yield from pieces(subject, name, rows.take(pa.array(at)), None if share is None else share[at])


def visible(source: Source, transactions: pa.Table | None, shares: Shares = ALL_TOGETHER) -> Any:
    """How many records of transactions the log that is owed has, as pieces: a pass over the log, in a DataFrame of Spark.

    Of these transactions, or of all (None). The rest of a transaction in doubt may be in sound blocks.
    """
    wanted = None
    if transactions is not None:
        wanted = np.unique(mixed(*(transactions[name].to_numpy() for name in TRANSACTION)))

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for run, c in by_runs(batches, ("session", "txn", "promised")):
            runs, there = np.full(len(c["txn"]), run, dtype=np.int64), c["promised"] & (c["txn"] > 0)
            if wanted is not None:
                there &= np.isin(mixed(runs, c["session"], c["txn"]), wanted)
            session, txn, counts = unique_pairs(c["session"][there], c["txn"][there])
            rows = (runs[: len(counts)], session, txn, counts)
            batch = pa.RecordBatch.from_arrays(list(map(pa.array, rows)), [*TRANSACTION, "there"])
            yield from pieces(Subject.TRANSACTIONS, "visible", batch, shares.of(run, mixed(session, txn)))

    return source.each({"log": (("session", "txn", "promised"), count)}, PIECE)


def reads_committed(reader: Ints, facts: Facts) -> Bools:
    """Rows of readers that were promised committed records only."""
    observed = {number: one.reads_committed for number, one in facts.observers.items()}
    committed: Bools = np.full(len(reader), facts.group_reads_committed)
    for number, reads in observed.items():
        committed[reader == number] = reads
    return committed
