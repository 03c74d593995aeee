"""Where kernels get their rows from: Spark hands out the work, and a task reads what it was given.

Files that a task can open are read by the task itself, column by column, as Arrow: Spark would turn every value into a
row and back (measured: two of three seconds of a pass). What only Hadoop can open is read by Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from harness.reconcile.schema import EFFECTS, LARGE

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Asked = Mapping[
    str, tuple[Sequence[str], Work]
]  # table -> columns that are wanted besides `run`, what to do with them

BATCH_ROWS = 1 << 17
ITEM_ROWS = 1 << 19  # what one piece of work has at most, or one row group if that is larger
TASKS_A_CORE = 3  # some end sooner than others


class Source(Protocol):
    def each(self, asked: Asked, schema: str) -> DataFrame:
        """What the work on each table gives, as one table. Rows of one file come in order, maybe to several tasks."""

    def of(self, runs: Collection[int]) -> Source:
        """The same for some of the runs."""


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

    def each(self, asked: Asked, schema: str) -> DataFrame:
        work = [
            (item, tuple(columns), do)
            for table, (columns, do) in asked.items()
            for item in self._items[table]
        ]
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


def _reading(work: Sequence[tuple[Item, tuple[str, ...], Work]]) -> Work:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                item, columns, do = work[number]
                with pq.ParquetFile(item.path) as file:
                    yield from do(
                        file.iter_batches(BATCH_ROWS, row_groups=list(item.groups), columns=["run", *columns])
                    )

    return read


@dataclass(frozen=True)
class Frames:
    """Tables that Spark reads."""

    frames: Mapping[str, DataFrame]

    def each(self, asked: Asked, schema: str) -> DataFrame:
        parts = [
            self.frames[table].select("run", *columns).mapInArrow(do, schema)
            for table, (columns, do) in asked.items()
        ]
        return reduce(DataFrame.unionAll, parts)

    def of(self, runs: Collection[int]) -> Frames:
        return Frames(
            {name: frame.where(frame["run"].isin(list(runs))) for name, frame in self.frames.items()}
        )
