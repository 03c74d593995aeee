"""Sealed tables as files: encodings change no value, for Arrow and for Spark, and errors come in the order of the work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.generated.run_folders import SMALLEST, generate
from harness.errors import LedgerError
from harness.reconcile.seal import sealed_files
from harness.reconcile.seal.schema import EFFECTS, LARGE, SCHEMAS, spark_schema
from harness.reconcile.seal.seal import seal
from harness.reconcile.seal.sealed_files import MANY_VALUES, SealedFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN = -5
ROWS = 140_000  # several groups


def random_column(field: pa.Field, count: int, dice: np.random.Generator) -> pa.Array:
    """Any values of its type: the whole range where values are many, with nulls everywhere but in `run`."""
    values: npt.NDArray[Any]
    if pa.types.is_boolean(field.type):
        values = dice.integers(0, 2, count).astype(np.bool_)
    else:
        whole = np.iinfo(field.type.to_pandas_dtype())
        low, high = (whole.min, whole.max) if field.name in MANY_VALUES else (-1, 7)
        values = dice.integers(low, high, count, dtype=whole.dtype, endpoint=True)
        values[: count // 2] = np.arange(count // 2) // 3
    return pa.array(values, mask=dice.random(count) < 0.1, type=field.type)


def random_pieces(table: str) -> Iterator[dict[str, Any]]:
    dice = np.random.default_rng(1)
    for count in (ROWS // 2, 1, 0, ROWS // 2):
        yield {field.name: random_column(field, count, dice) for field in SCHEMAS[table]}


def test_a_generated_ledger_has_the_same_tables_in_both_encodings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = generate(tmp_path, SMALLEST, plants=2).run
    seal(run)
    now = {name: pq.read_table(run.tables / name) for name in SCHEMAS}
    used = pq.read_metadata(next((run.tables / "log").iterdir())).row_group(0)
    monkeypatch.setattr(sealed_files, "encodings", lambda schema: {})
    seal(run)
    for name, schema in SCHEMAS.items():
        plain = pq.read_table(run.tables / name)
        assert now[name].equals(plain), name
        assert now[name].schema.equals(plain.schema), name
        assert now[name].schema.equals(schema), name
    encodings = {used.column(n).path_in_schema: used.column(n).encodings for n in range(used.num_columns)}
    assert "DELTA_BINARY_PACKED" in encodings["offset"]
    assert "RLE_DICTIONARY" in encodings["partition"]


@pytest.mark.parametrize("table", [*LARGE, EFFECTS])
def test_any_value_is_read_as_it_was_written(table: str, tmp_path: Path) -> None:
    with SealedFiles(tmp_path, RUN) as files:
        assert files.write(table, "any", random_pieces(table)) == ROWS + 1
    assert files.rows == {table: ROWS + 1}
    assert pq.read_table(tmp_path / table).equals(expected(table))


def expected(table: str) -> pa.Table:
    parts = pa.concat_tables([pa.table(piece, schema=SCHEMAS[table]) for piece in random_pieces(table)])
    return parts.set_column(0, SCHEMAS[table].field("run"), pa.array([RUN] * len(parts), pa.int64()))


def test_spark_reads_the_same_values_in_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Tables that only Hadoop can open are read by Spark; without its vectorized reader it would be slow."""
    with SealedFiles(tmp_path, RUN) as files:
        for table in (*LARGE, EFFECTS):
            files.write(table, "any", random_pieces(table))
    assert spark.conf.get("spark.sql.parquet.enableVectorizedReader") == "true"
    for table in (*LARGE, EFFECTS):
        frame = spark.read.schema(spark_schema(table)).parquet(f"file://{tmp_path}/{table}")
        plan = frame._jdf.queryExecution().explainString(
            frame._sc._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")  # type: ignore[union-attr]
        )
        assert "Batched: true" in plan, table
        order = [(name, "ascending") for name in SCHEMAS[table].names]
        found = frame.toArrow().cast(SCHEMAS[table]).sort_by(order)
        assert found.equals(expected(table).sort_by(order)), table


def test_a_failed_write_is_raised_in_place_of_a_later_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no room")

    def pieces() -> Iterator[dict[str, Any]]:
        yield next(random_pieces("log"))
        raise LedgerError("damaged")

    with pytest.raises(LedgerError, match="damaged"), SealedFiles(tmp_path / "sound", RUN) as files:
        files.write("log", "any", pieces())
    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(OSError, match="no room"), SealedFiles(tmp_path / "full", RUN) as files:
        files.write("log", "any", pieces())
    with pytest.raises(OSError, match="no room"), SealedFiles(tmp_path / "whole", RUN) as files:
        files.write("log", "any", random_pieces("log"))


def test_a_file_that_cannot_be_closed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close = pq.ParquetWriter.close

    def fail(file: pq.ParquetWriter) -> None:
        if file.is_open:
            close(file)
            raise OSError("no room")

    monkeypatch.setattr(pq.ParquetWriter, "close", fail)
    with pytest.raises(OSError, match="no room"), SealedFiles(tmp_path, RUN) as files:
        files.write("log", "any", random_pieces("log"))
