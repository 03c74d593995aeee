"""The sealed tables of runs as they lie on disk: the large ones for Spark, the small ones read here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from harness.errors import LedgerError
from harness.reconcile.seal.schema import EFFECTS, LARGE, SCHEMAS, SMALL, spark_schema
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.seal.untrusted_tables import need_sound


def read(spark: SparkSession, sealed: Mapping[str, Sealed]) -> dict[str, DataFrame]:
    """Return the large tables of one or many runs from their `tables/` folders, on any file system."""

    def read_one(name: str) -> DataFrame:
        frame = spark.read.schema(spark_schema(name)).parquet(*(f"{folder}/{name}" for folder in sealed))
        if not any(one.rows[name] for one in sealed.values()):
            return frame.where("false")  # explicit, so that Spark simplifies its plans
        return frame

    return {name: read_one(name) for name in (*LARGE, EFFECTS)}


def read_small(runs: Mapping[Path, Sealed]) -> dict[str, pa.Table]:
    """Return the small tables of one or many runs, from their `tables/` folders on this machine."""
    found = {}
    for name in SMALL:
        parts = []
        for folder, sealed in runs.items():
            try:
                parts.append(_table(folder / name, SCHEMAS[name]))
            except (pa.ArrowException, OSError, KeyError) as error:
                raise LedgerError(f"{folder / name}: cannot be read: {str(error).splitlines()[0]}") from error
            need_sound(parts[-1], folder / name, sealed)
            if parts[-1].num_rows != sealed.rows[name]:
                raise LedgerError(
                    f"{folder / name}: {parts[-1].num_rows} rows, but sealing wrote {sealed.rows[name]}: not a whole table"
                )
        found[name] = pa.concat_tables(parts)
    return found


def _table(folder: Path, schema: pa.Schema) -> pa.Table:
    """Return all files of a small table. Arrow's way to read a folder takes three times as long for files of a few rows."""
    parts = [schema.empty_table()]
    for path in sorted(folder.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            parts.append(file.read(use_threads=False).select(schema.names).cast(schema))
    return pa.concat_tables(parts)
