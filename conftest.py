"""pytest for the suites of this project: the plugin with short options, and a cluster that a suite may replace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from harness.pytest_plugin import evidence, settings
from harness.runtime import signals

if TYPE_CHECKING:
    from harness.campaign import Campaign, Execute
    from harness.contracts import Cluster

pytest_plugins = ["harness.pytest_plugin.plugin"]


def pytest_addoption(parser: pytest.Parser) -> None:
    settings.add_short_options(parser)
    group = parser.getgroup("onceproof")
    group.addoption(
        "--soak-minutes",
        type=float,
        default=10.0,
        help="minutes of faults in suites/test_soak.py (default: 10)",
    )
    group.addoption(
        "--times",
        type=int,
        default=0,
        help="number of repetitions of repeated checks, e.g. kills (default: each check has its own)",
    )
    group.addoption(
        "--busy",
        type=int,
        default=3,
        help="number of busy processes during suites/harness_checks/test_repeated.py (default: 3); use fewer on a loaded machine",
    )
    group.addoption(
        "--record-effects",
        action="store_true",
        help="write the effects that suites/test_faults.py measures to faults/measured.json, for docs/faults.md",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let SIGTERM and SIGHUP end a session as Ctrl-C does: fixtures undo faults and stop their clusters."""
    signals.install()
    if settings.value(config, "seed") is None:
        config.option.onceproof_seed = 1  # suites compute with it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "execute" in getattr(item, "fixturenames", ()):
            item.add_marker("onceproof")  # also on a cluster of the suite's own


@pytest.fixture(scope="session")
def cluster(onceproof_cluster: Cluster) -> Cluster:
    """The cluster of the session; a suite that needs another one has a fixture of this name."""
    return onceproof_cluster


@pytest.fixture(scope="session")
def campaign(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Campaign]:
    from suites.support.sessions import started_campaign

    with started_campaign(request.config, cluster) as campaign:
        yield campaign


@pytest.fixture
def execute(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    campaign: Campaign,
) -> Iterator[Execute]:
    """The plugin's `execute`, on the cluster and in the campaign of the suite."""
    yield from evidence.executing(request, cluster, campaign)
