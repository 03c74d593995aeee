"""The Parquet files of sealed tables, written by one thread while the rows that follow are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness.reconcile.rows import Columns
from harness.reconcile.schema import SCHEMAS

GROUP_ROWS = 1 << 16  # at least, in each group of a file but the last
# Of these columns a dictionary would be about as large as the column. Neighbours differ little, so differences are written.
MANY_VALUES = ("t", "t_outcome", "offset", "seq", "txn", "key", "origin_offset", "origin_seq")


def encodings(schema: pa.Schema) -> dict[str, Any]:
    """Return the options of `pq.ParquetWriter` for a table: a dictionary only where a column has few values.

    Spark reads both encodings in its vectorized reader.
    """
    many = [name for name in schema.names if name in MANY_VALUES]
    return {
        "use_dictionary": [name for name in schema.names if name not in many],
        "column_encoding": dict.fromkeys(many, "DELTA_BINARY_PACKED"),
    }


class SealedFiles:
    """The files of all tables of one run, below one folder; use it with `with`.

    Errors are raised in the order of the calls, as if each call did all of its writing: a write that failed is raised
    by a later call or at the end of the block, in place of any error that came up after it.
    """

    def __init__(self, folder: Path, run: int) -> None:
        self.rows: Counter[str] = Counter()  # of each table
        self._folder, self._run = folder, run
        self._thread = ThreadPoolExecutor(1, "sealed-files")
        self._last: Future[Any] | None = None

    def __enter__(self) -> Self:
        for name in SCHEMAS:
            (self._folder / name).mkdir(parents=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None or issubclass(kind, Exception):  # else it is an interrupt, which counts more
                self._wait()
        finally:
            self._thread.shutdown()

    def write(self, table: str, part: str, pieces: Iterable[Columns]) -> int:
        """Write one file of a table, some pieces at a time: memory follows their size. Return the number of rows."""
        schema, before = SCHEMAS[table], self.rows[table]
        path = self._folder / table / f"{part}.parquet"
        file = pq.ParquetWriter(path, schema, **encodings(schema))
        try:
            for rows in _in_groups(self._tables(schema, pieces)):
                self._wait()
                self._last = self._thread.submit(file.write_table, rows)
                self.rows[table] += rows.num_rows
        finally:
            try:
                self._wait()
            finally:
                self._last = self._thread.submit(file.close)
        return self.rows[table] - before

    def write_empty(self) -> None:
        """Write a file without rows for each table that has no file, so that its columns are known."""
        for name, schema in SCHEMAS.items():
            if not any((self._folder / name).iterdir()):
                self.write(name, "none", [{column: [] for column in schema.names}])

    def _wait(self) -> None:
        """Raise what went wrong in the work that the thread was given last."""
        if self._last is not None:
            self._last.result()

    def _tables(self, schema: pa.Schema, pieces: Iterable[Columns]) -> Iterator[pa.Table]:
        for columns in pieces:
            count = len(columns[schema.names[-1]])
            made = {**columns, "run": np.full(count, self._run, dtype=np.int64)}
            arrays = [pa.array(made[column.name], type=column.type) for column in schema]
            yield pa.Table.from_arrays(arrays, schema=schema)


def _in_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Put small pieces together: each group of rows in a file costs its readers as much as thousands of rows."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(one.num_rows for one in waiting) >= GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)
