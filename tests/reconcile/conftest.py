from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.ledger.manifest import ISOLATIONS
from harness.reconcile.spark import session
from tests.reconcile.cases import CASES
from tests.reconcile.histories import Built, History, drawn
from tests.reconcile.together import Outcome, reconcile_together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORIES = int(os.environ.get("ONCEPROOF_SPARK_HISTORIES", "60"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests: its start costs more than they do."""
    yield session.spark()
    session.stop()


@pytest.fixture(scope="session")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, History]:
    """Random histories with planted anomalies, as data. None asks for two findings that look the same."""
    drafts = tmp_path_factory.mktemp("drafts")
    several = [h for h in drawn(2 * HISTORIES) if not Built(h, drafts, "draft").repeats]
    return {f"history-{n}": history for n, history in enumerate(several[:HISTORIES])}


@pytest.fixture(scope="session")
def cut_readings(histories: Mapping[str, History]) -> Mapping[str, tuple[History, tuple[str, int], int]]:
    """Some of them, whose final reading of a partition stopped somewhere: isolation, partition and how far it came."""
    dice = random.Random(1)
    return {
        f"cut-{name}": (history, (dice.choice(ISOLATIONS), dice.choice((0, 0, 1))), dice.randrange(12))
        for name, history in list(histories.items())[: HISTORIES // 2]
    }


@pytest.fixture(scope="session")
def runs_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the runs of `outcomes`, each in a folder of its name."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def outcomes(
    spark: SparkSession,
    histories: Mapping[str, History],
    cut_readings: Mapping[str, tuple[History, tuple[str, int], int]],
    runs_root: Path,
) -> Mapping[str, Outcome]:
    """The findings of every literal case and every random history, by name: all of them in one Spark job."""
    runs = {name: replace(make(runs_root)[0], name=name) for name, make in CASES.items()}
    runs |= {name: Built(history, runs_root, name).run for name, history in histories.items()}
    for name, (history, what, reached) in cut_readings.items():
        runs[name] = Built(history, runs_root, name).run
        runs[name].stopped_at[what] = reached
    return reconcile_together(spark, runs)
