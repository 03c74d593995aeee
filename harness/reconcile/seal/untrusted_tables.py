"""Tables that were sealed elsewhere, on a machine that may be a stranger's: read with every value checked.

Tables of this machine are made again from checked journals each time. Tables of a run on another file system are read as
they are, so this is the only place where their values can be refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.errors import LedgerError
from harness.ledger.events import MOST_OFFSET, SESSION, check_event
from harness.ledger.manifest import ISOLATIONS, LABEL, MOST_NS, NAME, TRANSFORM
from harness.ledger.message import run_number
from harness.ledger.row_checks import LONGEST_NS
from harness.ledger.rundir import read_json
from harness.ledger.value_checks import (
    Wrong,
    boolean,
    integer,
    list_of,
    mapping,
    one_of,
    optional,
    shape,
    text,
)
from harness.reconcile.seal.schema import EFFECTS, LARGE

if TYPE_CHECKING:
    from harness.reconcile.run_locations import DistantRun
    from harness.reconcile.seal.sealed import Sealed

_COUNT = integer(0, 1 << 48)
_SMALL = integer(0, (1 << 31) - 1)
_SEALED = shape(
    {
        "run": integer(),
        "run_id": LABEL,
        "scenario": LABEL,
        "zero_ns": integer(0, MOST_NS),
        "group_isolation": one_of(ISOLATIONS),
        "topic_unchanged": boolean,
        "topic_names": list_of(LABEL, 256, least=1),
        "transform": TRANSFORM,
        "reader_names": list_of(NAME),
        "torn": list_of(text()),
        "gaps": list_of(text()),
        "rows": mapping(_COUNT),
        "in_log": _COUNT,
        "in_log_uncommitted": _COUNT,
        "readers": _COUNT,
        "observers": list_of(
            shape(
                {"reader": _SMALL, "name": NAME, "isolation": one_of(ISOLATIONS), "records": _COUNT,
                 "spans": list_of(list_of(integer(0, MOST_OFFSET + 1), 4, least=4))},
            )
        ),
        "rebalances": _COUNT,
        "commits": _COUNT,
        "transactions": mapping(_COUNT),
        "in_flight": optional(_SMALL),
        "sessions": list_of(
            shape({"session": SESSION, "producer": NAME, "incarnation": _SMALL, "attempted": _COUNT})
        ),
        "events": list_of(shape({"writer": NAME})),
    }
)  # fmt: skip

_MAY_BE_NULL = (
    "outcome",
    "did",
    "t_outcome",
    "told_partition",
    "phase",
    "partitions",
    "start",
    "end",
    "stable",
)
_RANGES = {
    "t": (0, MOST_NS), "offset": (0, MOST_OFFSET), "start": (0, MOST_OFFSET), "end": (0, MOST_OFFSET),
    "stable": (0, MOST_OFFSET), "partition": (-1, 1 << 15), "topic": (0, 255),
}  # fmt: skip


def read_sealed(run: DistantRun, name: str) -> Sealed:
    """Return the result of sealing, from the run's `tables/sealed.json`, whose mirror is here already."""
    from harness.reconcile.seal.sealed import Sealed

    stored, place = read_json(run.tables / name, "are the tables whole?"), f"{run.url}/tables/{name}"
    again = "remove tables/ there and put ledger/ beside it"
    try:
        _SEALED(stored)
        for event in stored["events"]:
            check_event(event, event["writer"])
        sealed = Sealed.from_json(stored)
    except Wrong as wrong:
        raise LedgerError(f"{place}: {wrong}; {again}") from wrong
    except TypeError as error:  # a field that this version does not have
        raise LedgerError(f"{place}: of another version; {again}") from error
    if sealed.run_id != run.read_manifest().get("run_id", sealed.run_id):
        raise LedgerError(f"{place}: of another run than the manifest beside it; {again}")
    if sealed.run != int(np.uint64(run_number(sealed.run_id)).astype(np.int64)):
        raise LedgerError(f"{place}: run is {sealed.run}, which is not the number of its run_id; {again}")
    return sealed


def need_sound(table: pa.Table, place: Path, sealed: Sealed) -> None:
    """Raise unless a small table has values where it must, all of this run and in their ranges."""
    for name in table.column_names:
        column = table[name]
        if column.null_count and name not in _MAY_BE_NULL:
            raise LedgerError(f"{place}: {name} is missing in {column.null_count} rows: not a whole table")
        if name in _RANGES and table.num_rows:
            low, high = _RANGES[name]
            found = pc.min_max(column).as_py()
            if found["min"] is not None and (found["min"] < low or found["max"] > high):
                raise LedgerError(
                    f"{place}: {name} from {found['min']} to {found['max']}, {low} to {high} is expected"
                )
    if table.num_rows and pc.any(pc.not_equal(table["run"], sealed.run)).as_py():
        raise LedgerError(f"{place}: rows of another run: not a table of {sealed.run_id}")


def unsound(table: str, columns: Mapping[str, str]) -> str:
    """Return a condition of Spark SQL for rows that sealing cannot have written. It has constants of this program only."""
    assert table in (*LARGE, EFFECTS)
    nullable = {*_MAY_BE_NULL} - {"outcome"} | ({"offset"} if table == "attempts" else set())
    missing = [f"`{name}` IS NULL" for name in columns if name not in nullable]
    outside = [
        f"`{name}` NOT BETWEEN {low} AND {high}" for name, (low, high) in _RANGES.items() if name in columns
    ]
    return " OR ".join(f"coalesce({condition}, false)" for condition in (*missing, *outside))


def span(columns: Mapping[str, str]) -> tuple[str, str]:
    """Return the first and the last time of a table, as aggregates of Spark SQL; null if it has no times."""
    times = [f"`{name}`" for name in ("t", "t_outcome") if name in columns]
    if not times:
        return "CAST(NULL AS bigint) AS first", "CAST(NULL AS bigint) AS last"
    return (
        f"least({', '.join(f'min({t})' for t in times)}, NULL) AS first",
        f"greatest({', '.join(f'max({t})' for t in times)}, NULL) AS last",
    )


def need_during(place: str, first: int | None, last: int | None, sealed: Sealed) -> None:
    """Raise unless all times lie within a week of the run's clock: the timeline covers all of it."""
    far = [t for t in (first, last) if t is not None and abs(t - sealed.zero_ns) > LONGEST_NS]
    if far:
        raise LedgerError(f"{place}: the time {far[0]} is more than a week from the run's clock")


def need_no_links(url: str) -> None:
    """Raise if a run folder that Hadoop reads from this machine's own disk has symbolic links in it."""
    if not url.startswith("file:"):
        return
    folder = Path(unquote(urlparse(url).path))
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise LedgerError(f"{path}: a symbolic link, which is not followed; remove it")
