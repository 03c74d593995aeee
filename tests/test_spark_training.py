"""The training of Spark's class archive runs what the job runs: judged in the driver, and judged in tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness import spark_training
from harness.ledger.rundir import RunDir, read_json
from harness.reconcile import closer_look

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ways that the closer look took."""
    taken: list[str] = []
    for name in ("_in_driver", "_in_tasks"):
        real = getattr(closer_look, name)

        def noted(*args: object, real: object = real, name: str = name) -> object:
            taken.append(name)
            return real(*args)  # type: ignore[operator]

        monkeypatch.setattr(closer_look, name, noted)
    return taken


def test_it_goes_both_ways_and_both_find_the_same(
    spark: SparkSession, tmp_path: Path, ways: list[str]
) -> None:
    spark_training.moved_pieces(spark, tmp_path)
    spark_training.judged_in_driver(spark, tmp_path / "driver")
    assert ways == ["_in_driver"]
    spark_training.judged_in_tasks(spark, tmp_path / "tasks")
    assert ways == ["_in_driver", "_in_tasks"]
    found = [
        read_json(RunDir(folder.parent).reconciled, "reconciled?")["counts"]
        for folder in sorted(tmp_path.glob("*/**/unsound*/**/reconciled.json"))
    ]
    assert len(found) == 2
    assert found[0] == found[1]
    assert found[0]["lost"] == 1
