"""The closer look: no row that was picked gets lost on its way to the finders, whatever the runs beside it are like."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.reconcile.job import reconcile_many
from tests.reconcile.cases import CASES

SOUND, BROKEN = "consistent", ("lost", "duplicated", "reordered", "undelivered", "aborted_read")


@pytest.mark.parametrize("turn", range(3))
def test_a_few_runs_together_have_what_each_has_alone(spark: SparkSession, tmp_path: Path, turn: int) -> None:
    """Sound runs in between, so that tasks come back with nothing; other names, so that runs have other numbers."""
    planted, runs = {}, []
    for number, name in enumerate([SOUND, *BROKEN[turn:], SOUND, *BROKEN[:turn]]):
        made, expected = CASES[name](tmp_path / str(number))
        runs.append(replace(made, name=f"{number}-{name}-{turn}").finish())
        planted[number] = {anomaly for anomaly, *_ in expected}
    for number, result in enumerate(reconcile_many(runs, spark)):
        found = {finding["anomaly"] for finding in result["findings"]}
        assert found == planted[number], result["run_id"]
