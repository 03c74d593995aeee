"""Both implementations asked about the same doubts: every finding, count and unjudged message has to be the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from harness.reconcile.blocks import Count, Facts, Space, Why
from harness.reconcile.by_queries.asking import ask
from harness.reconcile.by_queries.look import choose
from harness.reconcile.by_queries.missing import unjudged
from harness.reconcile.by_queries.tables import derive, names
from harness.reconcile.seal import Sealed
from harness.reconcile.select.across_tasks import Doubts
from harness.reconcile.session import for_few_rows
from harness.reconcile.source import Source

COMPARED: list[int] = []  # findings of each comparison


def old_finders(finders: Sequence[Any]) -> list[Any]:
    found = []
    for finder in finders:
        try:
            module = import_module(f"harness.reconcile.by_queries.anomalies.{finder.anomaly}")
        except ModuleNotFoundError:
            continue  # a finder of a test
        found.append(module.finder_class())
    return found


def need_same(
    spark: SparkSession,
    source: Source,
    small: Mapping[str, pa.Table],
    sealed: Sequence[Sealed],
    facts: Sequence[Facts],
    doubtful: Doubts,
    finders: Sequence[Any],
    found: Sequence[pa.Table],
    open_ends: Sequence[Mapping[str, Any]],
) -> None:
    chosen = choose(spark, source, doubtful, facts)
    with for_few_rows(spark, few=chosen.few, tiny=chosen.tiny):
        strange = doubtful.screened.count(Count.STRANGE) > 0
        tables = derive(spark, source, small, chosen, names(sealed), strange=strange)
        crashed: dict[str, str] = {}
        old = old_finders(finders)
        answers = ask(old, tables, lambda rows: rows.toArrow(), crashed)
        assert not crashed, crashed
        before = [row for table in answers for row in tables.names.spelled(table.sort_by("run")).to_pylist()]
        known = {finder.anomaly for finder in old}
        after = [row for table in found for row in table.to_pylist() if row["anomaly"] in known]
        same(before, after)
        if doubtful.reasons()[Space.MESSAGE] & (Why.MISSING | Why.OPEN_TXN):
            key = lambda entry: (entry["run"], entry["kind"])  # noqa: E731
            assert sorted(unjudged(tables), key=key) == sorted(open_ends, key=key)
        tables.unpersist()
        chosen.unpersist()


def same(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> None:
    one, other = sorted(map(_told, before)), sorted(map(_told, after))
    COMPARED.append(len(one))
    gone = [row for row in one if row not in other][:5]
    new = [row for row in other if row not in one][:5]
    assert one == other, f"{len(one)} and {len(other)} findings\nqueries only: {gone}\ntables only: {new}"


def _told(row: Mapping[str, Any]) -> str:
    evidence = {k: _number(v) for k, v in dict(row["evidence"] or ()).items()}
    return repr(
        [*((k, v) for k, v in sorted(row.items()) if k not in ("evidence", "at")), sorted(evidence.items())]
    )


def _number(text: str | None) -> Any:
    """1.0E-6 and 1e-6 are the same."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
