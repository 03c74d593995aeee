"""The columns of a finding, the same for every finder, and the words that explanations share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

LEDGER, HISTORY = "ledger", "history"  # inputs that a finder can be asked about
PIPELINE = "pipeline"  # ledgers of runs whose workload makes an output of its input

_TYPES: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "run": pl.Int64, "anomaly": pl.String, "excuse": pl.String, "topic": pl.Int32, "partition": pl.Int32,
    "messages": pl.List(pl.String), "offsets": pl.List(pl.Int64), "sender": pl.String, "reader": pl.String, "t": pl.Int64,
    "evidence": pl.List(pl.Struct({"key": pl.String, "value": pl.String})),
}  # fmt: skip
COLUMNS = pl.Schema(_TYPES)
ARROW = pa.schema([
    ("run", pa.int64()), ("anomaly", pa.string()), ("excuse", pa.string()), ("topic", pa.int32()), ("partition", pa.int32()),
    ("messages", pa.list_(pa.string())), ("offsets", pa.list_(pa.int64())), ("sender", pa.string()), ("reader", pa.string()),
    ("t", pa.int64()), ("evidence", pa.map_(pa.string(), pa.string())),
])  # fmt: skip

# An SQL expression over the columns of a table, such as "coalesce(t_outcome, t)"; or one that SQL cannot express.
Value = str | pl.Expr

ID = "sender || '-' || seq"  # the id that people read; as harness.ledger.message.message_id
STEP_MESSAGES = ("from_sender || '-' || from_seq", "sender || '-' || to_seq")  # of StepTables.steps_named
# A text in quotes, or a lower-case word that is not a function.
_TEXT_OR_COLUMN = re.compile(r"'[^']*'|\b[a-z_][a-z0-9_]*\b(?!\()")


def sql(text: str) -> pl.Expr:
    """Return an SQL expression over columns. Keywords are in capitals: a lower-case word is a column, even `offset` or `end`."""
    quoted = _TEXT_OR_COLUMN.sub(lambda m: m[0] if m[0].startswith("'") else f'"{m[0]}"', text)
    return pl.sql_expr(quoted)


def finding(
    rows: pl.DataFrame,
    anomaly: str,
    *,
    messages: Sequence[Value] | pl.Expr = (ID,),
    offsets: Sequence[Value] | pl.Expr = ("offset",),
    t: Value = "t",
    topic: Value = "topic",
    partition: Value = "partition",
    sender: Value = "sender",
    reader: Value = "NULL",
    excuse: Value = "NULL",
    evidence: Mapping[str, Value],
) -> pl.DataFrame:
    """Return a finding for each row. `t` is in ns; unknown values are null, and left out of `messages` and `offsets`."""
    values: dict[str, pl.Expr] = {
        "run": pl.col("run"),
        "anomaly": pl.lit(anomaly),
        "excuse": as_expr(excuse),
        "topic": as_expr(topic),
        "partition": as_expr(partition),
        "messages": _list(messages),
        "offsets": _list(offsets),
        "sender": as_expr(sender),
        "reader": as_expr(reader),
        "t": as_expr(t),
        "evidence": pl.lit(_evidence(rows, evidence)),
    }
    return rows.select(values[name].cast(kind).alias(name) for name, kind in COLUMNS.items())


def finding_of_read(rows: pl.DataFrame, anomaly: str, **evidence: Value) -> pl.DataFrame:
    """Return a finding for each record of a transaction that a reader got; a reader of read_uncommitted is excused."""
    return finding(
        rows, anomaly,
        reader="reader_name", excuse="CASE WHEN isolation = 'read_uncommitted' THEN 'read_uncommitted' END",
        evidence={"txn": "txn", "isolation": "isolation", **evidence},
    )  # fmt: skip


def _evidence(rows: pl.DataFrame, evidence: Mapping[str, Value]) -> pl.Series:
    """Return a list of names and values for each row.

    All lists are made at once: an expression of lists of structs takes twenty times as long.
    """
    if rows.is_empty():
        return pl.Series(dtype=COLUMNS["evidence"])
    exprs = {name: as_expr(value).cast(pl.String) for name, value in evidence.items()}
    values = rows.with_columns(**exprs).select(*exprs)
    # All values of the first name, then of the second …: the transposed index puts those of each row together.
    one_below_the_other = pl.concat(column.alias("value") for column in values)
    index = np.arange(len(one_below_the_other)).reshape(values.width, values.height).T.ravel()
    names = pl.Series("key", values.columns).gather(np.tile(np.arange(values.width), values.height))
    together = pl.DataFrame([names, one_below_the_other.gather(index)]).to_struct()
    return together.reshape((values.height, values.width)).arr.to_list()


def as_expr(value: Value) -> pl.Expr:
    return sql(value) if isinstance(value, str) else value


def _list(values: Sequence[Value] | pl.Expr) -> pl.Expr:
    if isinstance(values, pl.Expr):
        return values
    return pl.concat_list(as_expr(value) for value in values).list.drop_nulls()


def seconds(nanoseconds: str, digits: int = 6) -> pl.Expr:
    """Return a time span in seconds, for evidence."""
    return (sql(nanoseconds) / 1e9).round(digits)


def to_arrow(found: pl.DataFrame) -> pa.Table:
    """Return the same findings with the types of findings.parquet."""
    table = found.select(COLUMNS.names()).to_arrow().combine_chunks()
    arrays = []
    for field in ARROW:
        column = table[field.name].combine_chunks()
        if pa.types.is_map(field.type):
            column = column.cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))
            arrays.append(
                pa.MapArray.from_arrays(column.offsets, column.values.field(0), column.values.field(1))
            )
        else:
            arrays.append(column.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=ARROW)


# --- for explain ----------------------------------------------------------------------------------


def place(row: Mapping[str, Any]) -> str:
    """Return the position in words: `orders/2 at offset 17`, as far as it is known."""
    if row.get("partition") is None:
        return f"topic {row.get('topic')}"
    at = next(iter(row.get("offsets") or []), None)
    return f"{row['topic']}/{row['partition']}" + ("" if at is None else f" at offset {at}")


def when(row: Mapping[str, Any]) -> str:
    """Return the time in words, with the fault window it falls into."""
    if row.get("t_s") is None:
        return "at an unknown time"
    inside = "outside any fault window" if row.get("window") is None else f"in fault window {row['window']}"
    return f"{row['t_s']:.3f} s into the run ({inside})"


def first(row: Mapping[str, Any]) -> str:
    return next(iter(row.get("messages") or []), "an unknown message")


def reader_got(row: Mapping[str, Any]) -> str:
    """Return the sentence that a reader got a record, with the reader's isolation, the position and the time."""
    isolation = (row.get("evidence") or {}).get("isolation")
    return f"{row.get('reader')} ({isolation}) got {first(row)} from {place(row)} {when(row)}."
