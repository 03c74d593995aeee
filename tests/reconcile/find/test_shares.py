"""Many rows in doubt are judged inside Spark tasks, share by share: the findings are those of the driver, row by row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from harness.ledger.rundir import RunDir
from harness.reconcile.job import reconcile_many
from harness.reconcile.spark.sizes import ALL_IN_TASKS
from tests.reconcile.cases import CASES


def rows(run: RunDir) -> list[str]:
    """All findings of a run, each as a text, in an order that does not depend on shares."""
    return sorted(repr(sorted(row.items(), key=str)) for row in pq.read_table(run.findings).to_pylist())


def test_shares_find_what_the_driver_finds(spark: SparkSession, tmp_path: Path) -> None:
    """Every literal ledger, all in one job: sessions, partitions and keys of many runs meet in each share."""
    runs = []
    for number, (name, make) in enumerate(CASES.items()):
        made, _ = make(tmp_path / str(number))
        runs.append(replace(made, name=f"{number}-{name}").finish())
    in_driver = reconcile_many(runs, spark)
    found = [rows(run) for run in runs]
    assert sum(map(len, found)) > 200
    pairs = replace(ALL_IN_TASKS, stretch_bits=1)  # two neighbours: sessions and partitions are divided
    in_tasks = reconcile_many(runs, spark, sizes=pairs)
    for run, one, other, before in zip(runs, in_driver, in_tasks, found, strict=True):
        assert rows(run) == before, run.path
        assert other["counts"] == one["counts"], run.path
        assert other["coverage"] == one["coverage"], run.path
        assert other["crashed"] == one["crashed"] == {}
