"""A sample of the attempts of a run, for its picture in the report: rows at even distances in each session.

Only the sampled rows are read, so its cost does not depend on the size of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness.ledger.reading import attempts_at
from harness.reconcile.seal import rows as make
from harness.reconcile.seal.schema import SCHEMAS

MOST = 4_000  # attempts in the sample
FILE = "sample.parquet"
COLUMNS = ("session", "seq", "t", "topic", "partition", "told_partition", "offset", "outcome", "t_outcome")
SCHEMA = pa.schema([SCHEMAS["attempts"].field(name) for name in COLUMNS])


class SessionRows(NamedTuple):
    """The journal of one session's attempts."""

    path: Path
    session: int
    acks: str
    rows: int


def write(folder: Path, sessions: Sequence[SessionRows], most: int = MOST) -> None:
    """Write FILE into the folder of the sealed tables: every k-th attempt of each session, at most `most` in all."""
    chosen = sessions[:: ceil(len(sessions) / most) or 1]
    every = max(1, ceil(sum(one.rows for one in chosen) / max(1, most - len(chosen))))
    parts = [SCHEMA.empty_table()]
    for one in chosen:
        seqs = np.arange(0, one.rows, every, dtype=np.int64)
        if len(seqs):
            sampled = make.attempts(attempts_at(one.path, seqs), 0, one.session, one.acks, None)
            columns = {**sampled, "seq": seqs}
            arrays = [pa.array(columns[column.name], type=column.type) for column in SCHEMA]
            parts.append(pa.Table.from_arrays(arrays, schema=SCHEMA))
    pq.write_table(pa.concat_tables(parts), folder / FILE)


def read(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of the sample; none if the tables were sealed elsewhere."""
    rows: list[dict[str, Any]] = []
    if (folder / FILE).is_file():
        rows = pq.read_table(folder / FILE).to_pylist()
    return rows
