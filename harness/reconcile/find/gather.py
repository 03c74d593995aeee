"""Findings of all finders together: counted, written to their runs, and the worst few of each kind kept in full.

Findings come in pieces, one from the driver or many from Spark tasks. Memory depends on the largest piece.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.ledger.rundir import RunDir
from harness.reconcile.find.findings import ARROW
from harness.reconcile.seal.event_rows import windows
from harness.reconcile.seal.sealed import Sealed

WORST = 5  # findings of each kind that reconciled.json has in full
MOST = 1_000_000  # findings of each anomaly that are kept; all of them are counted

Kind = tuple[int, str, str | None]  # run, anomaly, excuse

_KIND = ["run", "anomaly", "excuse"]
_ORDER = [(name, "ascending") for name in (*_KIND, "t", "partition", "at")]
_DRESSED = pa.schema([
    ("run_id", pa.string()), *(field for field in ARROW if field.name != "topic"), ("topic", pa.string()),
    ("window", pa.int32()),
])  # fmt: skip


class Gathered:
    """The findings of many runs; a context manager that writes them to findings.parquet of each run."""

    def __init__(self, runs: Mapping[int, RunDir], sealed: Sequence[Sealed]) -> None:
        self._runs, self._sealed = runs, sealed
        self._writers: dict[int, pq.ParquetWriter] = {}
        self._files = ExitStack()
        self._kept: Counter[str] = Counter()
        self._worst: pa.Table | None = None
        self.counts: Counter[Kind] = Counter()

    def __enter__(self) -> Gathered:
        for number, run in self._runs.items():
            if run.findings.exists():  # a folder of the run itself: sealing has refused anything else
                shutil.rmtree(run.findings)
            run.findings.mkdir()
            file = pq.ParquetWriter(run.findings / "findings.parquet", _DRESSED)
            self._writers[number] = self._files.enter_context(file)
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def add(self, found: pa.Table) -> None:
        """Add one piece of findings, with the columns of harness.reconcile.find.findings."""
        if not found.num_rows:
            return
        for row in found.group_by(_KIND).aggregate([([], "count_all")]).to_pylist():
            self.counts[row["run"], row["anomaly"], row["excuse"]] += row["count_all"]
        found = _dressed(found.append_column("at", _first(found["offsets"])).sort_by(_ORDER), self._sealed)
        self._keep_worst(found)
        kept = self._within_limit(found).select(_DRESSED.names).cast(_DRESSED)
        for number in pc.unique(kept["run"]).to_pylist():
            self._writers[number].write_table(kept.filter(pc.equal(kept["run"], number)))

    def worst(self) -> list[dict[str, Any]]:
        """Return the first few of each kind, with the number `n` of findings of that kind."""
        rows = [] if self._worst is None else self._worst.drop_columns(["at"]).to_pylist()
        ranks: Counter[Kind] = Counter()
        worst = []
        for row in rows:
            kind = row["run"], row["anomaly"], row["excuse"]
            ranks[kind] += 1
            evidence = dict(row["evidence"] or ())
            worst.append({**row, "evidence": evidence, "n": self.counts[kind], "rank": ranks[kind]})
        return sorted(worst, key=lambda row: (row["anomaly"], row["excuse"] or "", row["rank"]))

    def _keep_worst(self, found: pa.Table) -> None:
        together = found if self._worst is None else pa.concat_tables([self._worst, found]).sort_by(_ORDER)
        self._worst = together.filter(pa.array(_rank_in_kind(together) < WORST))

    def _within_limit(self, found: pa.Table) -> pa.Table:
        chosen = np.ones(found.num_rows, dtype=np.bool_)
        anomalies = found["anomaly"].to_numpy(zero_copy_only=False)
        for anomaly in set(anomalies.tolist()):
            mine = np.flatnonzero(anomalies == anomaly)
            chosen[mine[max(0, MOST - self._kept[anomaly]) :]] = False
            self._kept[anomaly] += len(mine)
        return found if chosen.all() else found.filter(pa.array(chosen))


def _first(lists: pa.ChunkedArray) -> Any:
    """Return the first element of each list; null if it is empty."""
    together = lists.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(together), 0).to_numpy(zero_copy_only=False)
    first = pa.array(np.asarray(together.offsets)[:-1], mask=lengths == 0)
    return together.values.take(first)


def _rank_in_kind(table: pa.Table) -> Any:
    """Return the rank of each row among the rows of its kind; the table is sorted."""
    count = table.num_rows
    new = np.zeros(count, dtype=np.bool_)
    new[:1] = True
    for name in _KIND:
        values = table[name].to_numpy(zero_copy_only=False)
        new[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(new)
    return np.arange(count) - np.repeat(starts, np.diff(np.r_[starts, count]))


def _dressed(table: pa.Table, sealed: Sequence[Sealed]) -> pa.Table:
    """Add the names of run and topic, and the fault window that the time of the finding falls into."""
    run = table["run"].to_numpy()
    t = table["t"].fill_null(-1).to_numpy()
    topic = table["topic"].fill_null(0).to_numpy()
    window = np.full(len(run), -1, dtype=np.int32)
    run_id, topic_name = np.full(len(run), None, dtype=object), np.full(len(run), None, dtype=object)
    for one in sealed:
        mine = run == one.run
        if not mine.any():
            continue
        run_id[mine] = one.run_id
        for number, name in enumerate(one.topic_names):
            topic_name[mine & (topic == number)] = name
        # If several windows contain the time, the one that opened first counts.
        for life in reversed(windows([e for e in one.events if e["event"] == "window"])):
            window[mine & (life["opened"] <= t) & (t <= life["closed"])] = life["window"]
    unknown = topic_name == None  # noqa: E711  # of each
    topic_name[unknown] = [f"topic {number}" for number in topic[unknown]]
    return (
        table.drop_columns(["topic"])
        .add_column(0, "run_id", pa.array(run_id, pa.string()))
        .append_column("topic", pa.array(topic_name, pa.string()))
        .append_column("window", pa.array(window, mask=window < 0))
    )


def gathered(runs: Mapping[int, RunDir], sealed: Sequence[Sealed], pieces: Iterable[pa.Table]) -> Gathered:
    """Write and count all pieces."""
    with Gathered(runs, sealed) as all_of_them:
        for piece in pieces:
            all_of_them.add(piece)
    return all_of_them
