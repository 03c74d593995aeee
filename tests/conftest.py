"""Fixtures of all tests of the harness."""

from __future__ import annotations

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
