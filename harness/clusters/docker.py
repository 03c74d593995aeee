"""Brokers in containers: `--cluster docker`, and with `--zookeeper` a ZooKeeper ensemble beside them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.clusters.containers.cluster import DockerCluster
from harness.clusters.containers.zookeeper import DockerZooKeeperCluster

if TYPE_CHECKING:
    from harness.cluster_options import Choice


class Docker:
    """The kind `docker`: one of two clusters, chosen by the user's options."""

    @classmethod
    def chosen(cls, choice: Choice, folder: Path) -> DockerCluster:
        """Return the cluster that the options ask for, not started yet."""
        kind = DockerZooKeeperCluster if choice.zookeeper else DockerCluster
        return kind.chosen(choice, folder)


cluster_class = Docker
