"""Rows of this process as a table of Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema


def local(spark: SparkSession, table: pa.Table) -> DataFrame:
    """All rows, however they came together: of a table with an empty piece in it Spark drops the pieces behind that."""
    if not table.num_rows:
        return spark.createDataFrame([], from_arrow_schema(table.schema))
    return spark.createDataFrame(table.combine_chunks())
