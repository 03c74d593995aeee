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

from harness.reconcile.seal.rows import Columns
from harness.reconcile.seal.schema import SCHEMAS

GROUP_ROWS = 1 << 16  # at least, in each group of a file but the last
# A dictionary of such a column would be about as large as the column. Neighbours differ little, so differences are written.
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

    A write that failed is raised by its call, in place of any error that came up after it.
    """

    def __init__(self, folder: Path, run: int) -> None:
        self.rows: Counter[str] = Counter()  # of each table
        self.folder, self._run = folder, run
        self._thread = ThreadPoolExecutor(1, "sealed-files")

    def __enter__(self) -> Self:
        for name in SCHEMAS:
            (self.folder / name).mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def write(self, table: str, part: str, pieces: Iterable[Columns]) -> int:
        """Write one file of a table, some pieces at a time: memory depends on their size. Return the number of rows."""
        schema, before = SCHEMAS[table], self.rows[table]
        path = self.folder / table / f"{part}.parquet"
        written: Future[Any] | None = None  # the last group, or None
        with pq.ParquetWriter(path, schema, **encodings(schema)) as file:
            try:
                for rows in _in_groups(self._tables(schema, pieces)):
                    _raise_failure(written)
                    if rows.num_rows < GROUP_ROWS:
                        file.write_table(rows)  # faster than starting the thread
                    else:
                        written = self._thread.submit(file.write_table, rows)
                    self.rows[table] += rows.num_rows
            finally:
                _raise_failure(written)
        return self.rows[table] - before

    def write_empty(self) -> None:
        """Write a file without rows for each table that has no file, so that its columns are known."""
        for name, schema in SCHEMAS.items():
            if not any((self.folder / name).iterdir()):
                self.write(name, "none", [{column: [] for column in schema.names}])

    def _tables(self, schema: pa.Schema, pieces: Iterable[Columns]) -> Iterator[pa.Table]:
        for columns in pieces:
            count = len(columns[schema.names[-1]])
            made = {**columns, "run": np.full(count, self._run, dtype=np.int64)}
            arrays = [pa.array(made[column.name], type=column.type) for column in schema]
            yield pa.Table.from_arrays(arrays, schema=schema)


def _raise_failure(written: Future[Any] | None) -> None:
    """Wait for the thread; raise its error if it has one."""
    if written is not None:
        written.result()


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
