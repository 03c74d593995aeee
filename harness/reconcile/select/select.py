"""The closer look: rows that screening could not call sound, and only those, as pieces for the finders.

Finders ask about positions (all rows at one) and about messages (all rows that name one), so each picked row goes to the
subjects that it was picked for. Two passes over the tables, by kernels like those of screening: the first
(harness.reconcile.select.related_rows) finds what else belongs to what is in doubt, the second picks the rows. Few rows
are then narrowed in the driver (harness.reconcile.select.narrow); many go to shares of Spark tasks as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from harness.reconcile.blocks import BITS, Bools, Columns, Facts, Fate, Ints, Space, mixed, place_of
from harness.reconcile.fates import TRANSACTION
from harness.reconcile.owners import Shared
from harness.reconcile.pieces import PIECE, Bag, Shares, Subject, pieces
from harness.reconcile.schema import EFFECTS, LARGE, SCHEMAS
from harness.reconcile.screen import arrays_of, by_runs
from harness.reconcile.select.across_tasks import Doubts, Overcommit
from harness.reconcile.select.doubtful_steps import STEPS, Follower, Jumped, jumped_of
from harness.reconcile.select.related_rows import HUNTED, NEEDED, Hunt, claimed_place, in_ranges, ours
from harness.reconcile.select.row_keys import Kind, Wanted
from harness.reconcile.source import Source, Work
from harness.reconcile.steps import COLUMNS as STEP_COLUMNS
from harness.transform import INPUT, Transform

_INPUT = ("topic", "partition", "offset", "session", "seq")
# What finders get: `records` are rows of the log of which only their position counts; `inputs` and `effects` are of pipelines;
# `overcommits` and `shared` were found while screening.
PICKED: Mapping[str, pa.Schema] = {
    **{name: SCHEMAS[name] for name in (*LARGE, EFFECTS)},
    "records": SCHEMAS["log"],
    "steps": STEPS,
    "inputs": pa.schema([(name, pa.int64()) for name in ("run", *_INPUT, "effects")]),
    "overcommits": pa.schema([(field.name, pa.int64()) for field in fields(Overcommit)]),
    "shared": pa.schema([(field.name, pa.int64()) for field in fields(Shared)]),
}


def related(source: Source, doubts: Doubts) -> tuple[Wanted, Wanted]:
    """The keys of all rows that are wanted, and of those that narrowing must not drop.

    Whole blocks where screening knows no better; single messages and positions where it does.
    """
    wanted, sure = Wanted(), Wanted()
    for kind, space in ((Kind.MESSAGES, Space.MESSAGE), (Kind.POSITIONS, Space.POSITION)):
        s = doubts.screened.doubtful(space)
        wanted.add(kind, s["run"], s["a"], s["b"])
    hunt = Hunt.of(doubts)
    if hunt:
        found = arrays_of(source.each({name: (NEEDED[name], hunt.work(name)) for name in LARGE}, HUNTED))
        for kind in Kind:
            mine = found["kind"] == kind
            wanted.add(kind, *(found[name][mine] for name in ("run", "x", "y")))
            certain = mine & (found["sure"] == 1)
            sure.add(kind, *(found[name][certain] for name in ("run", "x", "y")))
    return wanted, sure


def with_all_tables(bag: Bag) -> dict[str, pa.Table]:
    """The bag with an empty table for each that has no rows in doubt."""
    return {name: schema.empty_table() for name, schema in PICKED.items()} | dict(bag)


@dataclass(frozen=True)
class Picker:
    """Picks the wanted rows of each table, and lists steps and effects in doubt, in one pass over all tables."""

    wanted: Wanted
    jumped: Jumped | None  # None: no step of a reader is in doubt
    effects: Wanted  # blocks of inputs whose effects are in doubt
    transforms: Mapping[int, Transform]
    shares: Shares
    open: Mapping[int, Ints]  # transactions of unknown fate, as in Facts

    @classmethod
    def of(
        cls, wanted: Wanted, doubts: Doubts, facts: Sequence[Facts], shares: Shares | None = None
    ) -> Picker:
        """`shares`: None to judge all rows together."""
        effects, s = Wanted(), doubts.screened.doubtful(Space.EFFECT)
        effects.add(Kind.POSITIONS, s["run"], s["a"], s["b"])
        transforms = {fact.run: fact.transform for fact in facts if fact.transform is not None}
        jumped = jumped_of(doubts) if doubts.about_steps else None
        unknown = {fact.run: fact.transactions[fact.fates == Fate.OPEN] for fact in facts}
        unknown = {run: numbers for run, numbers in unknown.items() if len(numbers)}
        return cls(wanted, jumped, effects, transforms, shares or Shares(), unknown)

    def pick(self, source: Source) -> Any:
        """The pieces, as a DataFrame of Spark."""
        tables = [*LARGE, EFFECTS] if self.effects.blocks else LARGE
        columns = {name: [column for column in SCHEMAS[name].names if column != "run"] for name in tables}
        return source.each({name: (columns[name], self.work(name)) for name in tables}, PIECE)

    def work(self, table: str) -> Work:
        return self._effects if table == EFFECTS else lambda batches: self._rows(table, batches)

    def _rows(self, table: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        needed = NEEDED[table][:5]  # which message it is and where it is
        follower = Follower(self.jumped) if table == "deliveries" and self.jumped is not None else None
        for batch in batches:
            messages, positions, records = (np.zeros(batch.num_rows, dtype=np.bool_) for _ in range(3))
            of_message, of_position, of_place = (np.zeros(batch.num_rows, dtype=np.int64) for _ in range(3))
            runs = batch.column("run").to_numpy()
            for run, c in by_runs([batch], needed):
                mine, place = runs == run, claimed_place(table, c)
                messages[mine] = self.wanted.message(run, c["session"], c["seq"])
                positions[mine] = self.wanted.position(run, place, c["offset"])
                if table == "log":
                    records[mine] = self._records(run, place, c["offset"], positions[mine])
                of_message[mine] = self.shares.of(run, c["session"], c["seq"])
                of_position[mine] = self.shares.of(run, place, c["offset"])
                of_place[mine] = self.shares.of(run, place)
            yield from self._taken(Subject.MESSAGES, table, batch, messages, of_message)
            yield from self._taken(Subject.POSITIONS, table, batch, positions, of_position)
            yield from self._taken(Subject.READINGS, "records", batch, records, of_place)
            if table != "attempts" and self.open and self.shares.count > 1:
                yield from self._proofs(table, batch.filter(pa.array(messages)))
            if table == "log" and self.effects.blocks:
                yield from self._inputs(batch)
            if follower is not None:
                for run, c in by_runs([batch], STEP_COLUMNS):
                    steps = follower.steps(run, c)
                    place = place_of(steps["to_topic"].to_numpy(), steps["to_partition"].to_numpy())
                    share = self._shared(self.shares.of(run, place))
                    yield from pieces(Subject.READINGS, "steps", steps, share)
        if follower is not None:
            for edges in follower.edges():
                yield from pieces(Subject.EDGES, "edges", edges)

    def _taken(
        self, subject: Subject, table: str, batch: pa.RecordBatch, chosen: Bools, share: Ints
    ) -> Iterator[pa.RecordBatch]:
        at = np.flatnonzero(chosen)
        if len(at):
            yield from pieces(subject, table, batch.take(pa.array(at)), self._shared(share[at]))

    def _records(self, run: int, place: Ints, offset: Ints, position: Bools) -> Bools:
        """Records that readers or commits may have passed over.

        With shares also those at positions in doubt: all of a partition are needed in one share, and nothing else of it.
        """
        found = self.wanted.record(run, place, offset)
        if self.shares.count == 1:
            return found & ~position
        return found | (position & in_ranges(run, place, offset, self.jumped or {}))

    def _proofs(self, table: str, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Transactions of unknown fate that somebody got a record of, with the reader; -1: the final reading got it."""
        reader = ("reader",) if table == "deliveries" else ("committed",)
        for run, c in by_runs([batch], ("session", "txn", "flags", *reader)):
            got = np.isin(c["session"] << 32 | c["txn"], self.open.get(run, ())) & ours(c)
            got &= c["committed"] if table == "log" else True
            by = c["reader"] if table == "deliveries" else np.full(len(got), -1)
            rows = np.unique(np.stack([c["session"][got], c["txn"][got], by[got]]), axis=1)
            columns = (np.full(rows.shape[1], run, dtype=np.int64), *rows)
            made = pa.RecordBatch.from_arrays(list(map(pa.array, columns)), [*TRANSACTION, "reader"])
            yield from pieces(Subject.EDGES, "proofs", made)

    def _inputs(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Inputs of pipelines in doubtful blocks, with how many effects each has to have."""
        for run, c in by_runs([batch], (*_INPUT, "passed", "flags")):
            place = place_of(c["topic"], c["partition"])
            mine = c["passed"] & (c["topic"] == INPUT) & ours(c)
            mine &= self.effects.holds(run, Kind.POSITIONS, place, c["offset"] >> BITS)
            if run in self.transforms and mine.any():
                rows: dict[str, Any] = {"run": np.full(int(mine.sum()), run, dtype=np.int64)}
                rows |= {name: c[name][mine] for name in _INPUT}
                rows["effects"] = self.transforms[run].effects(rows["session"], rows["seq"])
                made = pa.RecordBatch.from_pydict(rows)
                yield from self._at_origins("inputs", made, run, "")

    def _effects(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Effects of inputs in doubtful blocks."""
        for run, c in by_runs(batches, [name for name in SCHEMAS[EFFECTS].names if name != "run"]):
            place = place_of(c["origin_topic"], c["origin_partition"])
            mine = self.effects.holds(run, Kind.POSITIONS, place, c["origin_offset"] >> BITS)
            rows = {"run": np.full(int(mine.sum()), run, dtype=np.int64)}
            rows |= {name: values[mine] for name, values in c.items()}
            made = pa.RecordBatch.from_pydict(rows)
            yield from self._at_origins(EFFECTS, made, run, "origin_")

    def _at_origins(self, name: str, rows: pa.RecordBatch, run: int, prefix: str) -> Iterator[pa.RecordBatch]:
        """Rows of one run by the share of an input's position."""
        topic, partition, offset = (
            rows.column(f"{prefix}{column}").to_numpy() for column in ("topic", "partition", "offset")
        )
        share = self.shares.of(run, place_of(topic, partition), offset)
        yield from pieces(Subject.POSITIONS, name, rows, self._shared(share))

    def _shared(self, share: Ints) -> Ints | None:
        return share if self.shares.count > 1 else None


def found_already(doubts: Doubts) -> dict[str, pa.Table]:
    """Commits beyond what the group was given, and partitions with two owners: screening found them one by one."""
    found: dict[str, Sequence[Any]] = {"overcommits": doubts.overcommits, "shared": doubts.shared}
    return {
        name: pa.Table.from_pylist([vars(one) for one in rows], schema=PICKED[name])
        for name, rows in found.items()
    }


def visible_of(source: Source, transactions: pa.Table) -> pa.Table:
    """How many records of each of these transactions the log that is owed has, as `there`: a pass over the log.

    The rest of a transaction in doubt may be in sound blocks.
    """
    wanted = np.unique(_transaction_key(*(transactions[name].to_numpy() for name in TRANSACTION)))

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for run, c in by_runs(batches, ("session", "txn", "promised")):
            there = _of_any(run, c, wanted) & c["promised"]
            pairs, counts = np.unique(
                np.stack([c["session"][there], c["txn"][there]]), axis=1, return_counts=True
            )
            rows = (np.full(len(counts), run, dtype=np.int64), pairs[0], pairs[1], counts.astype(np.int64))
            yield pa.RecordBatch.from_arrays(list(map(pa.array, rows)), [*TRANSACTION, "there"])

    schema = ", ".join(f"{name} bigint" for name in (*TRANSACTION, "there"))
    counted = source.each({"log": (("session", "txn", "promised"), count)}, schema).toArrow()
    return counted.group_by(TRANSACTION).aggregate([("there", "sum")]).rename_columns([*TRANSACTION, "there"])


def _transaction_key(run: Ints, session: Ints, txn: Ints) -> Ints:
    return mixed(run, session, txn)


def _of_any(run: int, c: Columns, wanted: Ints) -> Bools:
    runs = np.full(len(c["txn"]), run, dtype=np.int64)
    found: Bools = np.isin(_transaction_key(runs, c["session"], c["txn"]), wanted)
    return found
