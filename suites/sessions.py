"""A cluster and a campaign for tests, from pytest's options. conftest.py has them for all tests; a suite may want its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from harness.campaign import Campaign
    from harness.clusters._server import Options
    from harness.contracts import Cluster

PROVE = "./onceproof prove --only {name} --seed {seed}"


@contextmanager
def started_cluster(
    config: pytest.Config, options: Options | None = None, settings: Mapping[str, str] = {}
) -> Iterator[Cluster]:
    """A real cluster; what crashed sessions left is swept first."""
    from harness import owned
    from harness.clusters._server import PLAIN
    from harness.clusters.local import LocalCluster

    runs: Path = config.getoption("--runs")
    owned.sweep(runs)
    folder = owned.new_cluster_folder(runs)
    combined = config.getoption("--combined")
    with LocalCluster(
        folder, combined=combined, options=options or PLAIN, broker_settings=settings
    ) as started:
        yield started
    owned.remove(folder)


@contextmanager
def started_campaign(config: pytest.Config, cluster: Cluster, command: str = PROVE) -> Iterator[Campaign]:
    """`command` repeats one of its runs; {name} and {seed} stand for the run's."""
    from harness.campaign import Campaign
    from harness.versions import versions

    with Campaign(
        cluster,
        config.getoption("--runs"),
        command_for=lambda s: command.format(name=s.name, seed=config.getoption("--seed")),
        versions=versions(),
    ) as campaign:
        yield campaign
