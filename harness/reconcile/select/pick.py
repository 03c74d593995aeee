"""The second pass of the closer look: pick the rows in doubt, and only those, as pieces for the finders.

Finders ask about positions (all rows at one) and about messages (all rows that name one), so each picked row goes to the
subjects that it was picked for. The first pass (harness.reconcile.select.related) has found which messages and positions
are wanted. Whole blocks are picked, with sound rows in them; finders find nothing about those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from harness.ledger.transform import INPUT
from harness.reconcile.arrays import Columns, Ints, mixed, place_of, unique_pairs
from harness.reconcile.screen.facts import Facts
from harness.reconcile.screen.observers import reads_committed
from harness.reconcile.screen.partition_owners import SharedPartition
from harness.reconcile.screen.reader_steps import COLUMNS as STEP_COLUMNS
from harness.reconcile.screen.screen import by_runs
from harness.reconcile.screen.spaces import Space
from harness.reconcile.screen.summaries import BITS
from harness.reconcile.screen.transaction_fates import TRANSACTION, Fate
from harness.reconcile.seal.schema import EFFECTS, LARGE, SCHEMAS
from harness.reconcile.select.doubts import Doubts
from harness.reconcile.select.readers import STEPS, Follower, Overcommit, across_tasks
from harness.reconcile.select.related import WHICH_AND_WHERE, claimed_place, ours
from harness.reconcile.select.wanted import Kind, Ranges, Wanted
from harness.reconcile.spark.pieces import ALL_TOGETHER, PIECE, Shares, Subject, pieces
from harness.reconcile.spark.source import Asked, Batch, Source, rows_at

_INPUT = ("topic", "partition", "offset", "session", "seq")
_INPUT_ROW = (*_INPUT, "passed", "flags")
_EFFECT = [name for name in SCHEMAS[EFFECTS].names if name != "run"]
_ORIGIN = ("origin_topic", "origin_partition", "origin_offset")
_REACHED = ("to_topic", "to_partition")  # by a step
# Columns that prove that a transaction was committed.
_PROOF = {
    "log": ("session", "txn", "flags", "committed"),
    "deliveries": ("session", "txn", "flags", "reader"),
}
_RECORD = ("run", *_INPUT, "flags", "uncommitted", "committed")
_NOT_ASKED = {  # columns that no finder reads
    "attempts": ("error", "phase"),
    "log": ("intended_topic", "intended_partition", "leader_epoch"),
    "deliveries": ("intended_topic", "intended_partition", "leader_epoch", "generation"),
}


def _numbers(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names if name != "place"])


# The tables that finders get. `records` are rows of the log that steps and commits of readers are compared with; `inputs`
# and `effects` belong to pipelines; `overcommits` and `shared` were found while screening.
PICKED: Mapping[str, pa.Schema] = {
    **{
        name: pa.schema([field for field in SCHEMAS[name] if field.name not in unread])
        for name, unread in _NOT_ASKED.items()
    },
    EFFECTS: SCHEMAS[EFFECTS],
    "steps": STEPS,
    "inputs": _numbers("run", *_INPUT, "effects"),
    "records": pa.schema([SCHEMAS["log"].field(name) for name in _RECORD]),
    "overcommits": _numbers(*(f.name for f in fields(Overcommit)), "topic", "partition"),
    "shared": _numbers(*(f.name for f in fields(SharedPartition)), "topic", "partition"),
}


@dataclass(frozen=True)
class Picker:
    """A pass over all tables that picks the wanted rows of each and lists steps and effects in doubt."""

    wanted: Wanted
    left_out: Ranges | None  # None: no step of a reader is in doubt
    between: bool  # steps or commits need the records between two offsets
    effects: Wanted  # blocks of inputs whose effects are in doubt
    some_open: bool  # the end of some transactions is unknown
    facts: Mapping[int, Facts]
    shares: Shares

    @classmethod
    def of(cls, wanted: Wanted, doubts: Doubts, facts: Sequence[Facts], shares: Shares) -> Picker:
        effects = Wanted()
        effects.add_blocks(Kind.POSITIONS, doubts.screened.doubtful(Space.EFFECT))
        left_out = doubts.left_out
        between = left_out is not None or bool(doubts.overcommits)
        some_open = any((fact.fates == Fate.OPEN).any() for fact in facts)
        by_run = {fact.run: fact for fact in facts}
        return cls(wanted, left_out, between, effects, some_open, by_run, shares)

    def pick(self, source: Source) -> Any:
        """Return the pieces, as a DataFrame of Spark."""
        tables = [*LARGE, EFFECTS] if self.effects.blocks else LARGE
        return source.each({name: self._asked(name) for name in tables}, PIECE)

    def _asked(self, table: str) -> Asked:
        if table == EFFECTS:
            return Asked(_EFFECT, self._effects)
        of_every_row = [*WHICH_AND_WHERE[table]]
        if table == "log" and self.effects.blocks:
            of_every_row += _INPUT_ROW
        if table == "deliveries" and self.left_out is not None:
            of_every_row += STEP_COLUMNS
        if table in _PROOF and self.some_open:
            of_every_row += _PROOF[table]
        first = list(dict.fromkeys(of_every_row))
        return Asked(first, lambda batches: self._rows(table, batches), PICKED[table].names)

    def _rows(self, table: str, batches: Iterable[Batch]) -> Iterator[pa.RecordBatch]:
        follower = Follower(self.left_out) if table == "deliveries" and self.left_out is not None else None
        for batch in batches:
            yield from self._wanted_rows(table, batch)
            if table == "log" and self.effects.blocks:
                yield from self._inputs(batch)
            if table in _PROOF and self.some_open:
                yield from self._proven(table, batch)
            if follower is not None:
                for run, c in by_runs([batch], STEP_COLUMNS):
                    yield from self._at(Subject.STEPS, "steps", follower.steps(run, c), *_REACHED)
        if follower is not None:
            for edges in follower.edges():
                yield from pieces(Subject.FIRST, "edges", edges)

    def _wanted_rows(self, table: str, batch: Batch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of wanted messages and positions."""
        for run, rows, c in _by_runs(batch, WHICH_AND_WHERE[table]):
            place, columns = claimed_place(table, c), PICKED[table].names
            messages = np.flatnonzero(self.wanted.message(run, c["session"], c["seq"]))
            positions = np.flatnonzero(self.wanted.position(run, place, c["offset"]))
            wanted: list[tuple[Subject, str, Ints, Sequence[str], tuple[Ints, ...]]] = [
                (Subject.MESSAGES, table, messages, columns, (c["session"], c["seq"])),
                (Subject.POSITIONS, table, positions, columns, (place, c["offset"])),
            ]
            if table == "log" and self.between:
                wanted.append((Subject.STEPS, "records", positions, _RECORD, (place,)))
            for subject, name, at, names, together in wanted:
                if len(at):
                    share = self.shares.of(run, *(values[at] for values in together))
                    yield from pieces(subject, name, rows_at(batch, rows[at], names), share)

    def _proven(self, table: str, batch: Batch) -> Iterator[pa.RecordBatch]:
        """Yield the transactions of unknown end of which a read_committed reader got a record (E2)."""
        for run, c in by_runs([batch], _PROOF[table]):
            facts = self.facts[run]
            committed = c["committed"] if table == "log" else reads_committed(c["reader"], facts)
            proven = committed & ours(c) & (c["txn"] > 0)
            proven[proven] = facts.fate_of(c["session"][proven], c["txn"][proven]) == Fate.OPEN
            session, txn, _ = unique_pairs(c["session"][proven], c["txn"][proven])
            rows = (np.full(len(session), run, dtype=np.int64), session, txn)
            yield from pieces(
                Subject.FIRST, "proven", pa.RecordBatch.from_arrays(list(map(pa.array, rows)), TRANSACTION)
            )

    def _inputs(self, batch: Batch) -> Iterator[pa.RecordBatch]:
        """Yield the inputs of pipelines in doubtful blocks, with the number of effects that each must have."""
        for run, c in by_runs([batch], _INPUT_ROW):
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
        """Yield the effects of inputs in doubtful blocks."""
        for run, c in by_runs(batches, _EFFECT):
            place = place_of(c["origin_topic"], c["origin_partition"])
            mine = self.effects.holds(run, Kind.POSITIONS, place, c["origin_offset"] >> BITS)
            rows = {"run": np.full(int(mine.sum()), run, dtype=np.int64)}
            rows |= {name: values[mine] for name, values in c.items()}
            yield from self._at(Subject.POSITIONS, EFFECTS, pa.RecordBatch.from_pydict(rows), *_ORIGIN)

    def _at(
        self,
        subject: Subject,
        name: str,
        rows: pa.RecordBatch,
        topic: str,
        partition: str,
        offset: str | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows by the share of their partition, or of their position if they have an offset."""
        place = place_of(rows.column(topic).to_numpy(), rows.column(partition).to_numpy())
        within = None if offset is None else rows.column(offset).to_numpy()
        yield from pieces(subject, name, rows, self.shares.of(rows.column("run").to_numpy(), place, within))

    def found_here(self, doubts: Doubts, edges: pa.Table | None) -> Iterator[pa.RecordBatch]:
        """Yield pieces of what the driver found: commits beyond what the group was given, partitions with two owners, and
        steps across tasks."""
        found: dict[str, Sequence[Any]] = {"overcommits": doubts.overcommits, "shared": doubts.shared}
        for name, rows in found.items():
            listed = [
                {**vars(one), "topic": one.place >> 32, "partition": one.place & 0xFFFF_FFFF} for one in rows
            ]
            made = pa.Table.from_pylist(listed, schema=PICKED[name])
            for batch in made.to_batches():
                yield from self._at(Subject.STEPS, name, batch, "topic", "partition")
        if edges is not None and self.left_out is not None:
            for batch in across_tasks(edges, self.left_out).combine_chunks().to_batches():
                yield from self._at(Subject.STEPS, "steps", batch, *_REACHED)


def _by_runs(batch: Batch, columns: Sequence[str]) -> Iterator[tuple[int, Ints, Columns]]:
    """Yield the rows of each run: their numbers in the batch, and these columns of them as arrays."""
    runs = batch.column("run").to_numpy()
    for run, c in by_runs([batch], columns):
        yield run, np.flatnonzero(runs == run), c


def visible(source: Source, transactions: pa.Table | None, shares: Shares = ALL_TOGETHER) -> Any:
    """Count the records of these transactions, or of all (None), in the log that is owed.

    Returns pieces as a DataFrame of Spark. This takes a pass over the whole log, because the other records of a transaction
    in doubt may be in sound blocks.
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

    return source.each({"log": Asked(("session", "txn", "promised"), count)}, PIECE)
