"""Asking finders: each by itself, some at a time, so that one that fails is named and never hides the others.

Their queries are over few rows, where most of the time is planning. One query for all of them was measured to take
twice as long as all of them one by one: what Spark does with a plan grows faster than the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from harness.contracts import Finder
from harness.reconcile.by_queries.findings import COLUMNS
from harness.reconcile.by_queries.tables import Tables
from harness.reconcile.rows import windows
from harness.reconcile.seal import Sealed

WORST = 5  # findings of each kind that are told in full
MOST = 1_000_000  # findings of each kind that are kept; all of them are counted
AT_A_TIME = 3

Crashed = dict[str, str]
Rows = list[dict[str, Any]]
Answer = TypeVar("Answer")

_KIND = ["run", "anomaly", "excuse"]
_ORDER = [("run", "ascending"), ("anomaly", "ascending"), ("excuse", "ascending"), ("t", "ascending"),
          ("partition", "ascending"), ("at", "ascending")]  # fmt: skip


def ask(
    finders: Sequence[Finder],
    tables: Tables,
    answer: Callable[[DataFrame], Answer],
    crashed: Crashed,
) -> list[Answer]:
    """What `answer` makes of each finder's findings; why a finder could not be asked goes into `crashed`."""

    def one(finder: Finder) -> list[Answer]:
        try:
            return [answer(finder.find(tables).select(*COLUMNS))]  # type: ignore[attr-defined]
        except Exception as error:  # noqa: BLE001  a finder may raise anything; it must not hide the others
            crashed[finder.anomaly] = reason(error)
            return []

    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="ask") as pool:
        return [found for answers in pool.map(one, finders) for found in answers]


def findings(
    tables: Tables, finders: Sequence[Finder], sealed: Sequence[Sealed], crashed: Crashed
) -> tuple[pa.Table | None, Rows]:
    """All findings, and the worst few of each kind, each with the number `n` of its kind."""

    def answer(found: DataFrame) -> tuple[pa.Table, Mapping[Any, int]]:
        table = found.selectExpr("*", "get(offsets, 0) AS at").limit(MOST + 1).toArrow()
        if table.num_rows <= MOST:
            return table, {}
        counts = {
            tuple(row[name] for name in _KIND): row["count"]
            for row in found.groupBy(*_KIND).count().collect()
        }
        return table.slice(0, MOST), counts

    answers = ask(finders, tables, answer, crashed)
    if not answers:
        return None, []
    table = pa.concat_tables([table for table, _ in answers]).sort_by(_ORDER)
    more = {kind: n for _, counts in answers for kind, n in counts.items()}
    dressed = _dressed(tables.names.spelled(table), sealed)
    return dressed.drop_columns(["at"]), _worst(dressed, more)


def _dressed(table: pa.Table, sealed: Sequence[Sealed]) -> pa.Table:
    """With the run's and the topic's name, and the fault window that the finding's time falls into."""
    run = table["run"].to_numpy()
    t = table["t"].fill_null(-1).to_numpy()
    topic = table["topic"].fill_null(0).to_numpy()
    window = np.full(len(run), -1, dtype=np.int32)
    run_id, topic_name = np.full(len(run), None, dtype=object), np.full(len(run), None, dtype=object)
    for one in sealed:
        mine = run == one.run
        run_id[mine] = one.run_id
        for number, name in enumerate(one.topic_names):
            topic_name[mine & (topic == number)] = name
        # Of several windows the one that opened first counts.
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


def _worst(table: pa.Table, more: Mapping[Any, int]) -> Rows:
    """The first few of each kind; the table is sorted."""
    counts = table.group_by(_KIND).aggregate([([], "count_all")]).to_pylist()
    rows: Rows = []
    for kind in counts:
        mine = table.filter(_all(_same(table[name], kind[name]) for name in _KIND)).slice(0, WORST)
        n = more.get(tuple(kind[name] for name in _KIND), kind["count_all"])
        for rank, row in enumerate(mine.to_pylist(), start=1):
            rows.append({**row, "evidence": dict(row["evidence"] or ()), "n": n, "rank": rank})
    return sorted(rows, key=lambda row: (row["anomaly"], row["excuse"] or "", row["rank"]))


def _same(column: Any, value: Any) -> Any:
    return pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False)


def _all(conditions: Any) -> Any:
    first, *others = conditions
    for other in others:
        first = pc.and_(first, other)
    return first


def reason(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"[:500]
