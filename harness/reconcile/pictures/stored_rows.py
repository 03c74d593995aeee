"""Rows of the sealed tables of one run by their names, without Spark: a few attempts, and stretches of the log.

Only the groups of rows that may have them are read, and no more than MOST_GROUPS of a table: a run with millions of findings
costs no more than one with hundreds. Rows beyond that are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from harness.reconcile.seal.sample import COLUMNS

MOST_GROUPS = 64
_RECORD = ["topic", "partition", "offset", "session", "seq", "flags", "uncommitted", "committed"]
Row = Mapping[str, Any]
Sent = tuple[int, int]  # session, seq


class Stretch(NamedTuple):
    """Offsets of one partition, both ends included."""

    topic: int
    partition: int
    low: int
    high: int


def attempts(tables: Path, wanted: Collection[Sent]) -> dict[Sent, Row]:
    """Return the attempts with these names that are in the tables."""
    seqs: dict[int, list[int]] = defaultdict(list)
    for session, seq in wanted:
        seqs[session].append(seq)
    found: dict[Sent, Row] = {}
    left = MOST_GROUPS
    for path in sorted((tables / "attempts").glob("*.parquet")):
        number = path.stem.rpartition(".")[2]  # <writer>.<session>
        mine = sorted(seqs.get(int(number), ())) if number.isdigit() else []
        if not mine:
            continue
        with pq.ParquetFile(path) as file:
            for group, places in _groups_of(file, mine):
                if left == 0:
                    return found
                left -= 1
                rows = file.read_row_group(group, columns=list(COLUMNS), use_threads=False)
                found |= {(row["session"], row["seq"]): row for row in rows.take(places).to_pylist()}
    return found


def _groups_of(file: pq.ParquetFile, seqs: list[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield each group of rows with its places of these sequence numbers: the n-th row of a session has number n."""
    counts = [file.metadata.row_group(n).num_rows for n in range(file.metadata.num_row_groups)]
    firsts = [0, *accumulate(counts)]
    groups = np.searchsorted(firsts, seqs, side="right") - 1
    for group in sorted({*groups.tolist()}):
        if group < len(counts):
            yield group, [seq - firsts[group] for seq, of in zip(seqs, groups, strict=True) if of == group]


def log(tables: Path, wanted: Iterable[Stretch]) -> dict[Stretch, list[Row]]:
    """Return the records of the log in these stretches, in order of offset."""
    stretches, found = list(dict.fromkeys(wanted)), defaultdict[Stretch, list[Row]](list)
    left = MOST_GROUPS
    for path in sorted((tables / "log").glob("*.parquet")) if stretches else ():
        with pq.ParquetFile(path) as file:
            for group in range(file.metadata.num_row_groups):
                here = [one for one in stretches if _may_have(file, group, one)]
                if not here:
                    continue
                if left == 0:
                    return found
                left -= 1
                rows = file.read_row_group(group, columns=_RECORD, use_threads=False)
                columns = {name: rows[name].to_numpy() for name in ("topic", "partition", "offset")}
                for one in here:
                    there = (columns["topic"] == one.topic) & (columns["partition"] == one.partition)
                    there &= (columns["offset"] >= one.low) & (columns["offset"] <= one.high)
                    found[one] += rows.take(np.flatnonzero(there)).to_pylist()
    return found


def _may_have(file: pq.ParquetFile, group: int, stretch: Stretch) -> bool:
    """Return False if the least and the greatest values of the group exclude every record of the stretch."""
    metadata = file.metadata.row_group(group)
    limits = {}
    for number in range(metadata.num_columns):
        column = metadata.column(number)
        if column.path_in_schema in ("topic", "partition", "offset") and column.is_stats_set:
            limits[column.path_in_schema] = column.statistics.min, column.statistics.max
    asked = {
        "topic": (stretch.topic,) * 2,
        "partition": (stretch.partition,) * 2,
        "offset": (stretch.low, stretch.high),
    }
    return all(
        low <= asked[name][1] and high >= asked[name][0]
        for name, (low, high) in limits.items()
        if low is not None and high is not None
    )
