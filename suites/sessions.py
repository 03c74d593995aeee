"""A cluster and a campaign for tests, from pytest's options. conftest.py has them for all tests; a suite may want its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from harness.campaign import Campaign
    from harness.clusters._server import Options
    from harness.contracts import Cluster


@contextmanager
def started_cluster(config: pytest.Config, options: Options | None = None) -> Iterator[Cluster]:
    """A real cluster; what crashed sessions left is swept first."""
    from harness import owned
    from harness.clusters._server import PLAIN
    from harness.clusters.local import LocalCluster

    runs: Path = config.getoption("--runs")
    owned.sweep(runs)
    folder = owned.new_cluster_folder(runs)
    with LocalCluster(folder, combined=config.getoption("--combined"), options=options or PLAIN) as started:
        yield started
    owned.remove(folder)


@contextmanager
def started_campaign(config: pytest.Config, cluster: Cluster) -> Iterator[Campaign]:
    from harness.campaign import Campaign
    from harness.versions import versions

    with Campaign(
        cluster,
        config.getoption("--runs"),
        command_for=lambda s: f"./onceproof prove --only {s.name} --seed {config.getoption('--seed')}",
        versions=versions(),
    ) as campaign:
        yield campaign
