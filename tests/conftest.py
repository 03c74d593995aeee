"""Fixtures of all tests of the harness."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that need a Spark session into one group: starting and warming up Spark takes most of a minute."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests: its start takes longer than the tests."""
    from harness.reconcile.spark import session

    yield session.spark()
    session.stop()


@pytest.fixture(autouse=True)
def only_marked_tests_start_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that starts Spark without its mark: it would be slow among the quick ones and change those after it."""
    before = _spark_started()
    yield
    if not any(request.node.get_closest_marker(name) for name in ("spark", "cluster")):
        assert _spark_started() == before, "this test started or ended Spark: mark it with pytest.mark.spark"


def _spark_started() -> bool:
    session = sys.modules.get("harness.reconcile.spark.session")
    return session is not None and session.started()
