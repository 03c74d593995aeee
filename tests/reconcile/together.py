"""Many literal runs reconciled in one job, each by its own number: what makes a hundred cases cost one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from harness.ledger.literal_run import LiteralRun
from harness.reconcile.job import reconcile_many

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Finding = tuple[str, tuple[str, ...], tuple[int, ...]]  # anomaly, messages, offsets


@dataclass(frozen=True)
class Outcome:
    found: frozenset[Finding]
    result: Mapping[str, Any]  # as in reconciled.json


def reconcile_together(spark: SparkSession, runs: Mapping[str, LiteralRun]) -> dict[str, Outcome]:
    """The findings of every run, by the run's name."""
    folders = {name: run.finish() for name, run in runs.items()}
    results = reconcile_many(list(folders.values()), spark)
    outcomes = {}
    for (name, folder), result in zip(folders.items(), results, strict=True):
        rows = pq.read_table(folder.findings).to_pylist()
        found = frozenset((row["anomaly"], tuple(row["messages"]), tuple(row["offsets"])) for row in rows)
        assert len(rows) == len(found), f"{name}: a finding came twice"
        assert result["crashed"] == {}
        outcomes[name] = Outcome(found, result)
    return outcomes
