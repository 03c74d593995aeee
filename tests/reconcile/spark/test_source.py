"""Reading the groups of a file: the columns that decide first, the others only where rows are taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.reconcile.spark.source import Asked, RowGroup, _rows, rows_at

NAMES = ["run", "seq", "t", "key"]
TABLE = pa.table({
    "run": np.full(10, 7), "seq": np.arange(10), "t": np.arange(10) * 100, "key": pa.array([None, *range(9)], pa.int32()),
})  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> pq.ParquetFile:
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path, row_group_size=4)
    return pq.ParquetFile(path)


class Watched:
    """A file that notes which columns were read."""

    def __init__(self, file: pq.ParquetFile) -> None:
        self._file, self.read = file, list[list[str]]()

    def read_row_group(self, number: int, columns: list[str], use_threads: bool) -> pa.Table:
        self.read.append(columns)
        return self._file.read_row_group(number, columns=columns, use_threads=use_threads)


def test_other_columns_are_read_once_and_only_when_asked_for(file: pq.ParquetFile) -> None:
    watched = Watched(file)
    group = RowGroup(watched, 1, ["run", "seq"], NAMES)
    assert (group.num_rows, group.column("seq").to_pylist()) == (4, [4, 5, 6, 7])
    assert watched.read == [["run", "seq"]]
    taken = rows_at(group, np.array([1, 3]), NAMES)
    assert taken.to_pylist() == TABLE.slice(4, 4).take([1, 3]).to_pylist()
    assert rows_at(group, np.array([0]), ["key"]).to_pylist() == [{"key": 3}]
    assert watched.read == [["run", "seq"], ["t", "key"]]


def test_a_batch_and_a_row_group_give_the_same_rows(file: pq.ParquetFile) -> None:
    def all_rows(asked: Asked, groups: tuple[int, ...]) -> list[dict[str, int]]:
        parts = _rows(file, groups, asked)
        return [row for part in parts for row in rows_at(part, np.arange(part.num_rows), NAMES).to_pylist()]

    whole, as_needed = Asked(["seq", "t", "key"], iter), Asked(["seq"], iter, NAMES)
    assert all_rows(whole, (0, 1, 2)) == all_rows(as_needed, (0, 1, 2)) == TABLE.to_pylist()
    assert all_rows(whole, (2,)) == all_rows(as_needed, (2,)) == TABLE.slice(8).to_pylist()
