"""Kafka brokers with a ZooKeeper ensemble as local processes, each link behind its own proxy, as in local.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from harness.clusters.base.composition import Power
from harness.clusters.ensemble.cluster import WithZooKeeper
from harness.clusters.ensemble.nodes import ZooKeeperBroker, ZooKeeperNode
from harness.clusters.links.mesh import Member
from harness.clusters.local import LocalCluster
from harness.clusters.powers.local_nodes import POWERS_OF_ZOOKEEPERS, LocalNode


class ZooKeeperCluster(WithZooKeeper[LocalNode], LocalCluster):
    """N brokers `broker-1…` and M servers `zookeeper-1…`, of which more than half have to run."""

    kind = "zookeeper"
    instead: ClassVar[str] = "--cluster local"

    def _formatter(self) -> Callable[[LocalNode], None]:
        for jvm in self._jvms.values():  # jars provided by the user may be of another version
            self._must_fit(jvm.kafka_version)
        return self._prepare

    def _kind_of(self, member: Member) -> type[LocalNode]:
        return ZooKeeperNode if member.zookeeper else ZooKeeperBroker

    def _powers_of(self, member: Member) -> Sequence[type[Power]]:
        return POWERS_OF_ZOOKEEPERS if member.zookeeper else super()._powers_of(member)


cluster_class = ZooKeeperCluster
