"""Columns of the sealed tables that are made from journals: attempts, log, deliveries and effects. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harness.contracts import Outcome
from harness.reconcile.seal.merge import Rows, joined, taken
from harness.reconcile.seal.schema import SCHEMAS

BEFORE, DURING, AFTER = 0, 1, 2
Columns = dict[str, Any]
Reach = dict[tuple[int, int], int]  # topic, partition -> offset
Touched = dict[tuple[int, int], npt.NDArray[np.int64]]  # topic, partition -> times


def attempts(rows: Rows, first: int, session: int, acks: str, span: tuple[int, int] | None) -> Columns:
    """Return attempts of one session from number `first` on. `span` is from the first fault window to the end of the last."""
    acked = rows["outcome"] == Outcome.ACKED
    # With acks=0 the broker does not answer: the client makes up the offset that it reports.
    placed = acked & (rows["offset"] >= 0) & (rows["told_partition"] >= 0) & (acks != "0")
    return {
        "session": np.full(len(rows), session, dtype=np.int64),
        "seq": np.arange(first, first + len(rows), dtype=np.int64),
        "t": rows["t_attempt"],
        **{
            name: _column("attempts", rows, name)
            for name in ("topic", "partition", "key", "txn", "outcome", "error")
        },
        "t_outcome": pa.array(rows["t_outcome"], mask=rows["t_outcome"] < 0),
        "told_partition": pa.array(
            _column("attempts", rows, "told_partition"), mask=rows["told_partition"] < 0
        ),
        "offset": pa.array(rows["offset"], mask=~placed),
        "phase": _phase(rows["t_outcome"], span),
    }


def _phase(t: npt.NDArray[np.int64], span: tuple[int, int] | None) -> Any:
    """Return BEFORE the first fault window, DURING, or AFTER the last one; null if there was none."""
    if span is None:
        return pa.nulls(len(t), pa.int32())
    return np.where(t < span[0], BEFORE, np.where(t > span[1], AFTER, DURING)).astype(np.int32)


def records(rows: Rows) -> Columns:
    """The columns that a record of the log and a delivery share."""
    shared = [name for name in SCHEMAS["log"].names if name in (rows.dtype.names or ())]
    return {name: _column("log", rows, name) for name in shared}


def deliveries(rows: Rows, reader: int, touched: Touched) -> Columns:
    """Return the deliveries to one reader; `touched` are the times of the assignments that it recorded."""
    generation = np.zeros(len(rows), dtype=np.int32)
    for (topic, partition), times in touched.items():
        mine = (rows["topic"] == topic) & (rows["partition"] == partition)
        generation[mine] = np.searchsorted(times, rows["t"][mine], side="right")
    return {**records(rows), "reader": np.full(len(rows), reader, dtype=np.int32), "generation": generation}


def touched(assignments: list[Columns], reader: int) -> Touched:
    """Return the times at which each partition was given to this reader or taken from it, in order."""
    times: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in assignments:
        if row["reader"] == reader:
            for partition in row["partitions"]:
                times[row["topic"], partition].append(row["t"])
    return {place: np.sort(np.array(found, dtype=np.int64)) for place, found in times.items()}


def effects(rows: Rows, *, late: bool = False) -> Columns:
    columns = {
        name: _column("effects", rows, name)
        for name in SCHEMAS["effects"].names
        if name not in ("run", "late")
    }
    return {**columns, "late": np.full(len(rows), int(late), dtype=np.int64)}


def behind(rows: Rows, stable: Reach) -> Rows:
    """Return the rows at or above the last stable offset of their partition."""
    late = np.zeros(len(rows), dtype=np.bool_)
    for (topic, partition), offset in stable.items():
        mine = (rows["topic"] == topic) & (rows["partition"] == partition)
        late |= mine & (rows["offset"] >= offset)
    return rows[late]


_SAME = ("offset", "session", "seq", "txn", "key", "flags")


def log(readings: Mapping[str, Rows], owed: str, group: str, passed: Reach) -> tuple[Rows, Columns]:
    """Merge both final readings of one partition: a record that both found is one row. Return records and columns.

    `readings` are by isolation; `owed` is the isolation whose log is promised, `group` the one that the group reads.
    """
    uncommitted, committed = readings["read_uncommitted"], readings["read_committed"]
    both = joined([uncommitted, committed])
    order = _by_offset(both, len(uncommitted))
    again = np.zeros(len(both), dtype=bool)
    again[1:] = np.logical_and.reduce([_next_is_same(both[name][order]) for name in _SAME])
    first, strict = np.flatnonzero(~again), order >= len(uncommitted)
    rows = taken(both, order[first])
    # Copies of one record are neighbours, so a sum over each stretch says which readings found it.
    found = {
        "read_uncommitted": np.add.reduceat(~strict, first, dtype=np.int64) > 0 if len(first) else strict,
        "read_committed": np.add.reduceat(strict, first, dtype=np.int64) > 0 if len(first) else strict,
    }
    limit = passed.get((int(rows["topic"][0]), int(rows["partition"][0])), 0) if len(rows) else 0
    return rows, {
        "uncommitted": found["read_uncommitted"],
        "committed": found["read_committed"],
        "promised": found[owed],
        "passed": found[group] & (rows["offset"] < limit),
    }


def _next_is_same(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    same: npt.NDArray[np.bool_] = values[1:] == values[:-1]
    return same


def _by_offset(rows: Rows, strict_from: int) -> npt.NDArray[np.int64]:
    """Return the order by offset, session and sequence number; of equal rows those from `strict_from` on come last.

    Readings are sorted by offset already, so putting them together is a merge and far quicker than sorting by all keys.
    Only offsets that more than one record claims need the other keys.
    """
    order = np.argsort(rows["offset"], kind="stable")
    offset, session, seq = (rows[name][order] for name in ("offset", "session", "seq"))
    other = _next_is_same(offset) & ~(_next_is_same(session) & _next_is_same(seq))
    if other.any():
        unsure = np.flatnonzero(np.isin(offset, offset[1:][other]))
        some = order[unsure]
        order[unsure] = some[np.lexsort((some >= strict_from, seq[unsure], session[unsure], offset[unsure]))]
    return order


def _column(table: str, rows: Rows, name: str) -> npt.NDArray[Any]:
    """Return a field of all rows, contiguous and in the type of the table's column, so that Arrow takes it as it is."""
    return np.ascontiguousarray(rows[name], dtype=SCHEMAS[table].field(name).type.to_pandas_dtype())
