from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.reconcile import session

from .cases import CASES
from .histories import Built, History, drawn
from .together import Outcome, reconcile_together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORIES = 40


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests: its start costs more than they do."""
    yield session.spark()
    session.stop()


@pytest.fixture(scope="session")
def histories() -> Mapping[str, History]:
    """Random histories with planted anomalies, as data."""
    return {f"history-{n}": history for n, history in enumerate(drawn(HISTORIES))}


@pytest.fixture(scope="session")
def outcomes(
    spark: SparkSession, histories: Mapping[str, History], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Outcome]:
    """What was found in every literal case and every random history, by name: all of them in one Spark job."""
    root = tmp_path_factory.mktemp("runs")
    runs = {name: replace(make(root)[0], name=name) for name, make in CASES.items()}
    runs |= {name: Built(history, root, name).run for name, history in histories.items()}
    return reconcile_together(spark, runs)
