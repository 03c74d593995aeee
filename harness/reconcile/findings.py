"""What every finding looks like, whoever found it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

COLUMNS = [
    "run", "anomaly", "excuse", "topic", "partition", "messages", "offsets", "sender", "reader", "t", "evidence",
]  # fmt: skip


def finding(
    anomaly: str,
    *,
    messages: Column,
    offsets: Column,
    t: Column,
    topic: Column,
    partition: Column,
    sender: Column | None = None,
    reader: Column | None = None,
    excuse: Column | None = None,
    evidence: Mapping[str, Column] | None = None,
) -> list[Column]:
    """The columns that every finder selects last; `t` is in ns, what is unknown is null."""
    nothing = f.lit(None)
    pairs = [c for name, value in (evidence or {}).items() for c in (f.lit(name), value.cast("string"))]
    return [
        f.col("run"),
        f.lit(anomaly).alias("anomaly"),
        (nothing if excuse is None else excuse).cast("string").alias("excuse"),
        topic.cast("int").alias("topic"),
        partition.cast("int").alias("partition"),
        messages.cast("array<string>").alias("messages"),
        offsets.cast("array<bigint>").alias("offsets"),
        (nothing if sender is None else sender).cast("string").alias("sender"),
        (nothing if reader is None else reader).cast("string").alias("reader"),
        t.cast("bigint").alias("t"),
        (f.create_map(*pairs) if pairs else f.create_map()).cast("map<string,string>").alias("evidence"),
    ]


def known(*columns: Column) -> Column:
    """Those of the columns that are not null, as an array."""
    return f.array_compact(f.array(*columns))


def count(items: DataFrame) -> DataFrame:
    """How many items there are in each run: what `compared` answers."""
    return items.groupBy("run").agg(f.count(f.lit(1)).alias("n"))


# --- for explain ----------------------------------------------------------------------------------


def place(row: Mapping[str, Any], offset: Any = None) -> str:
    """The position in words: `orders/2 at offset 17`, as far as it is known."""
    if row.get("partition") is None:
        return f"topic {row.get('topic')}"
    at = offset if offset is not None else next(iter(row.get("offsets") or []), None)
    return f"{row['topic']}/{row['partition']}" + ("" if at is None else f" at offset {at}")


def when(row: Mapping[str, Any]) -> str:
    """The time in words, with the fault window it falls into."""
    if row.get("t_s") is None:
        return "at an unknown time"
    inside = "outside any fault window" if row.get("window") is None else f"in fault window {row['window']}"
    return f"{row['t_s']:.3f} s into the run ({inside})"


def first(row: Mapping[str, Any]) -> str:
    return next(iter(row.get("messages") or []), "an unknown message")
