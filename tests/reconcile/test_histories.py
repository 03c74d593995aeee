"""Precision and recall of one: random histories with planted anomalies, a batch of them in one Spark job."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .histories import Built, History, histories
from .together import reconcile_together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 40


@settings(max_examples=12, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(batch=st.lists(histories(), min_size=BATCH, max_size=BATCH))
def test_exactly_what_was_planted_is_found(spark: SparkSession, batch: list[History]) -> None:
    with tempfile.TemporaryDirectory() as root:
        built = {f"history-{n}": Built(history, Path(root), f"history-{n}") for n, history in enumerate(batch)}
        outcomes = reconcile_together(spark, {name: one.run for name, one in built.items()})
    for name, one in built.items():
        assert outcomes[name].found == one.expected, f"{name}: {batch[int(name.rpartition('-')[2])]}"
        assert {anomaly for anomaly, _, _ in one.expected} <= outcomes[name].suspected
