"""Rows on their way through Spark: a piece of a table as one binary value, which Spark moves and never looks into.

A piece says what it is for: its share (rows that have to be judged together have the same one), its subject, and the
table that its rows belong to. Planning a query for them, or turning them into rows of Spark and back, would cost more
than judging them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa

from harness.reconcile.arrays import Ints, mixed

PIECE = "share bigint, subject string, name string, rows binary"
_ARROW = pa.schema(
    [("share", pa.int64()), ("subject", pa.string()), ("name", pa.string()), ("rows", pa.binary())]
)

# Spark copies pieces several times, so large ones are compressed; of a small one that would cost more than it saves.
_PLAIN, _COMPRESSED = pa.ipc.IpcWriteOptions(), pa.ipc.IpcWriteOptions(compression="lz4")
_LARGE_ROWS = 1 << 11

Bag = Mapping[str, pa.Table]  # tables by name


class Subject(StrEnum):
    """The use of rows: the questions about one subject are asked about all rows of a share together."""

    POSITIONS = "positions"  # every row at some positions
    STEPS = "steps"  # steps, commits and assignments of readers in some partitions
    MESSAGES = "messages"  # every row that names some messages
    ORDER = "order"  # messages of a session in a partition
    KEYS = "keys"
    TRANSACTIONS = "transactions"
    FIRST = "first"  # for the driver, before anything is asked
    RESULT = "result"  # for the driver: findings and the like


@dataclass(frozen=True)
class Shares:
    """The division of rows by a number, such as a session or a place, and by stretches of seqs or offsets within it."""

    count: int = 1
    bits: int = 14  # a stretch is 2 ** bits seqs or offsets; rows of one stretch are in one share

    def of(self, run: int | Ints, number: Ints, within: Ints | None = None) -> Ints | None:
        """Return the share of each row; None if there is only one. Without `within`, rows with the same number are judged together."""
        if self.count == 1:
            return None
        runs = np.broadcast_to(np.asarray(run, dtype=np.int64), number.shape)
        parts = (runs, number) if within is None else (runs, number, within >> self.bits)
        return (mixed(*parts).view(np.uint64) % np.uint64(self.count)).astype(np.int64)


ALL_TOGETHER = Shares()


def piece(subject: Subject, name: str, rows: pa.Table | pa.RecordBatch, share: int = 0) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    options = _COMPRESSED if rows.num_rows >= _LARGE_ROWS else _PLAIN
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write(rows)  # a batch or a table
    packed = sink.getvalue()
    ends = pa.py_buffer(np.array([0, packed.size], dtype=np.int32))
    arrays = [
        pa.array([share], pa.int64()),
        pa.array([subject.value]),
        pa.array([name]),
        pa.Array.from_buffers(pa.binary(), 1, [None, ends, packed]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def pieces(
    subject: Subject, name: str, rows: pa.RecordBatch, share: Ints | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows as one piece, or one for each share; no piece without rows."""
    if not rows.num_rows:
        return
    if share is None:
        yield piece(subject, name, rows)
        return
    order = np.argsort(share, kind="stable")
    in_order = rows.take(pa.array(order))
    numbers, starts = np.unique(share[order], return_index=True)
    for number, start, end in zip(numbers.tolist(), starts, [*starts[1:], len(order)], strict=True):
        yield piece(subject, name, in_order.slice(start, end - start), number)


def each_table(packed: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of each piece."""
    for batch in packed:
        yield from map(_table, batch.column("rows"))


def unpacked(packed: Iterable[pa.RecordBatch], subject: Subject) -> dict[str, pa.Table]:
    """Return the tables of one subject, of all shares together."""
    found: dict[str, list[pa.Table]] = defaultdict(list)
    for batch in packed:
        about = (batch.column(name).to_pylist() for name in ("subject", "name"))
        for of_subject, name, rows in zip(*about, batch.column("rows"), strict=True):
            if of_subject == subject:
                found[name].append(_table(rows))
    return {name: pa.concat_tables(tables).combine_chunks() for name, tables in found.items()}


def _table(rows: pa.BinaryScalar) -> pa.Table:
    with pa.ipc.open_stream(rows.as_buffer()) as stream:
        return stream.read_all()
