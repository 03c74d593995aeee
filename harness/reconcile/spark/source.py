"""Sources of rows for the kernels: Spark distributes the work, and each task reads its part.

Files that a task can open are read by the task itself, column by column, as Arrow: Spark would turn every value into a
row and back (measured: two of three seconds of a pass). Files that only Hadoop can open are read by Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from harness.reconcile.arrays import Ints
from harness.reconcile.seal.schema import EFFECTS, LARGE

Work = Callable[[Iterable[Any]], Iterator[pa.RecordBatch]]  # of record batches, or of row groups

BATCH_ROWS = 1 << 17
ITEM_ROWS = 1 << 19  # at most, in one piece of work; a row group if that is larger
TASKS_A_CORE = 3  # some end sooner than others


@dataclass(frozen=True)
class Asked:
    """The work on the rows of a table, and the columns that it needs besides `run`."""

    columns: Sequence[str]
    work: Work
    more: Sequence[str] = ()  # columns of picked rows: not read if the work picks none


class Source(Protocol):
    def each(self, asked: Mapping[str, Asked], schema: str) -> DataFrame:
        """Return the results of the work on each table, as one table. Rows of one file come in order, maybe to several tasks."""

    def of(self, runs: Collection[int]) -> Source:
        """Return the source of only these runs."""


@dataclass(frozen=True)
class Item:
    path: str
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Files:
    """Tables of files that every task can open."""

    spark: SparkSession
    folders: Mapping[int, Path]  # `tables/` of each run, by its number

    @cached_property
    def _items(self) -> Mapping[str, list[Item]]:
        return {
            table: [
                item
                for folder in self.folders.values()
                for path in sorted((folder / table).glob("*.parquet"))
                for item in _items_in(path)
            ]
            for table in (*LARGE, EFFECTS)
        }

    def each(self, asked: Mapping[str, Asked], schema: str) -> DataFrame:
        work = [(item, of_table) for table, of_table in asked.items() for item in self._items[table]]
        if not work:
            return self.spark.createDataFrame([], schema)
        tasks = min(len(work), TASKS_A_CORE * self.spark.sparkContext.defaultParallelism)
        return self.spark.range(0, len(work), 1, tasks).mapInArrow(_reading(work), schema)

    def of(self, runs: Collection[int]) -> Files:
        return Files(self.spark, {run: folder for run, folder in self.folders.items() if run in runs})


def _items_in(path: Path) -> Iterator[Item]:
    metadata = pq.read_metadata(path)
    groups: list[int] = []
    rows = 0
    for number in range(metadata.num_row_groups):
        count = metadata.row_group(number).num_rows
        if groups and rows + count > ITEM_ROWS:
            yield Item(str(path), tuple(groups))
            groups, rows = [], 0
        groups.append(number)
        rows += count
    if rows:
        yield Item(str(path), tuple(groups))


def _reading(work: Sequence[tuple[Item, Asked]]) -> Work:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                item, asked = work[number]
                with pq.ParquetFile(item.path) as file:
                    yield from asked.work(_rows(file, item.groups, asked))

    return read


def _rows(file: pq.ParquetFile, groups: Sequence[int], asked: Asked) -> Iterator[Any]:
    names = ["run", *asked.columns]
    if not asked.more:
        return file.iter_batches(BATCH_ROWS, row_groups=list(groups), columns=names)  # type: ignore[no-any-return]
    return (RowGroup(file, number, names, asked.more) for number in groups)


class RowGroup:
    """The rows of one group of a file, like a record batch; some columns are read only when one of them is needed."""

    def __init__(self, file: pq.ParquetFile, number: int, names: Sequence[str], more: Sequence[str]) -> None:
        self._file, self._number = file, number
        self._columns: dict[str, pa.Array] = {}
        self._read(names)
        self._more = [name for name in more if name not in self._columns]
        self.num_rows = len(self._columns[names[0]])

    def column(self, name: str) -> pa.Array:
        if name not in self._columns:
            self._read(self._more)
        return self._columns[name]

    def _read(self, names: Sequence[str]) -> None:
        rows = self._file.read_row_group(self._number, columns=list(names), use_threads=False)
        self._columns |= {name: rows[name].combine_chunks() for name in names}


Batch: TypeAlias = pa.RecordBatch | RowGroup


def rows_at(rows: Batch, at: Ints, names: Sequence[str]) -> pa.RecordBatch:
    """Return some columns of some rows."""
    numbers = pa.array(at)
    return pa.RecordBatch.from_arrays([rows.column(name).take(numbers) for name in names], list(names))


@dataclass(frozen=True)
class SparkTables:
    """Tables that Spark reads."""

    frames: Mapping[str, DataFrame]

    def each(self, asked: Mapping[str, Asked], schema: str) -> DataFrame:
        parts = []
        for table, of_table in asked.items():
            names = dict.fromkeys(["run", *of_table.columns, *of_table.more])
            parts.append(self.frames[table].select(*names).mapInArrow(of_table.work, schema))
        return reduce(DataFrame.unionAll, parts)

    def of(self, runs: Collection[int]) -> SparkTables:
        return SparkTables(
            {name: frame.where(frame["run"].isin(list(runs))) for name, frame in self.frames.items()}
        )
