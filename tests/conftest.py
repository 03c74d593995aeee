"""What all tests of the harness share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a Spark session are a group of their own: starting and warming Spark takes most of a minute."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests: its start costs more than they do."""
    from harness.reconcile.spark import session

    yield session.spark()
    session.stop()
