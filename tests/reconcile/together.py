"""Many literal runs reconciled in one job, each by its own number: what makes a hundred cases cost one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from harness.reconcile.findings import COLUMNS
from harness.reconcile.job import all_finders, ask, suspicious
from harness.reconcile.seal import seal
from harness.reconcile.tables import load
from harness.testing.ledgers import LiteralRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Finding = tuple[str, tuple[str, ...], tuple[int, ...]]  # anomaly, messages, offsets


@dataclass(frozen=True)
class Outcome:
    found: frozenset[Finding]
    suspected: frozenset[str]  # anomalies whose finder would have been called
    compared: Mapping[str, int]
    excuses: Mapping[str, int]


def reconcile_together(spark: SparkSession, runs: Mapping[str, LiteralRun]) -> dict[str, Outcome]:
    """What every finder finds in every run, by the run's name."""
    folders = {name: run.finish() for name, run in runs.items()}
    sealed = {name: seal(folder) for name, folder in folders.items()}
    tables = load(spark, {folders[name].tables: one for name, one in sealed.items()})
    finders = all_finders()
    try:
        crashed: dict[str, str] = {}
        values = ask(tables, finders, crashed)
        frames = [finder.find(tables).select(*COLUMNS) for finder in finders]
        rows = reduce(lambda a, b: a.unionByName(b), frames).collect()
    finally:
        tables.unpersist()
    assert not crashed
    outcomes = {}
    for name, one in sealed.items():
        value = values.get(one.run, {})
        mine = [row for row in rows if row["run"] == one.run]
        outcomes[name] = Outcome(
            found=frozenset((row["anomaly"], tuple(row["messages"]), tuple(row["offsets"])) for row in mine),
            suspected=frozenset(finder.anomaly for finder in suspicious(finders, value)),
            compared={
                finder.anomaly: sum(n for k, n in value.items() if k.startswith(f"compared {finder.anomaly} "))
                for finder in finders
            },
            excuses={row["anomaly"]: 1 for row in mine if row["excuse"] is not None},
        )
        assert len(mine) == len(outcomes[name].found), f"{name}: a finding came twice"
    return outcomes
