"""Records that lie between two offsets of their partition."""

from __future__ import annotations

import numpy as np
import polars as pl

from harness.reconcile.find.tables import PARTITION


def between(
    ranges: pl.DataFrame, records: pl.DataFrame, first: str, below: str, at_most: int | None
) -> pl.DataFrame:
    """Return the ranges that have a record at `first` <= offset < `below`, with the number of records (n).

    Of the first `at_most` records (None: of all) also the offsets (between_offsets) and the ids (between_ids; a record whose
    message is unknown has none). Both sides are sorted once and cut by binary search, so the cost grows with the number of
    ranges plus the listed records, not with the product of both sides.
    """
    listed = records.sort(*PARTITION, "offset", "id", nulls_last=True)
    parts = listed.partition_by(PARTITION, as_dict=True)
    found: list[pl.DataFrame] = []
    for key, mine in ranges.partition_by(PARTITION, as_dict=True).items():
        if key not in parts:
            continue
        there = parts[key]
        offsets = there["offset"].to_numpy()
        starts = np.searchsorted(offsets, mine[first].to_numpy(), side="left")
        ends = np.searchsorted(offsets, mine[below].to_numpy(), side="left")
        counts = np.maximum(ends - starts, 0)
        lengths = counts if at_most is None else np.minimum(counts, at_most)
        # Rows of `there` that each range lists: 0 0 0 1 1 … beside 4 5 6 9 10 …
        range_of = np.repeat(np.arange(len(mine)), lengths)
        within = np.arange(len(range_of)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = there[starts[range_of] + within]
        lists = pl.DataFrame({"range": range_of, "o": rows["offset"], "i": rows["id"]}).group_by("range").agg(
            pl.col("o").alias("between_offsets"), pl.col("i").drop_nulls().alias("between_ids")
        )  # fmt: skip
        numbered = mine.with_columns(
            pl.Series("range", np.arange(len(mine))), pl.Series("n", counts, pl.Int64)
        )
        found.append(numbered.join(lists, on="range", how="inner").drop("range"))
    if found:
        return pl.concat(found)
    return ranges.clear().with_columns(
        pl.lit(0, pl.Int64).alias("n"),
        pl.lit(None, pl.List(pl.Int64)).alias("between_offsets"),
        pl.lit(None, pl.List(pl.String)).alias("between_ids"),
    )
