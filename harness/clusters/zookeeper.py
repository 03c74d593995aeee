"""Kafka brokers with a ZooKeeper ensemble as local processes, each link behind its own proxy, as in local.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from harness.clusters.base.options import PLAIN, Options
from harness.clusters.ensemble.cluster import WithZooKeeper, must_be_ensemble, must_not_be_combined
from harness.clusters.ensemble.nodes import ZooKeeperBroker, ZooKeeperNode
from harness.clusters.links.mesh import Member
from harness.clusters.local import LocalCluster
from harness.clusters.powers.local_nodes import LocalNode
from harness.provision.kafka import LAST_WITH_ZOOKEEPER

if TYPE_CHECKING:
    from harness.cluster_options import Choice


class ZooKeeperCluster(WithZooKeeper, LocalCluster):
    """N brokers `broker-1…` and M servers `zookeeper-1…`, of which more than half have to run."""

    kind = "zookeeper"
    instead: ClassVar[str] = "--cluster local"

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 3,
        zookeepers: int = 3,
        kafka_version: str = LAST_WITH_ZOOKEEPER,
        broker_settings: Mapping[str, str] = {},
        keep: bool = False,
        options: Options = PLAIN,
    ) -> None:
        must_be_ensemble(zookeepers)
        super().__init__(
            folder,
            brokers=brokers,
            controllers=zookeepers,
            kafka_version=kafka_version,
            broker_settings=broker_settings,
            keep=keep,
            options=options,
        )

    @classmethod
    def chosen(cls, choice: Choice, folder: Path) -> Self:
        must_not_be_combined(choice)
        return cls(
            folder, kafka_version=choice.kafka, broker_settings=choice.settings, options=choice.options
        )

    def _formatter(self) -> Callable[[LocalNode], None]:
        for jvm in self._jvms.values():  # jars provided by the user may be of another version
            self._must_fit(jvm.kafka_version)
        return self._prepare

    def _kind_of(self, member: Member) -> type[LocalNode]:
        return ZooKeeperNode if member.zookeeper else ZooKeeperBroker


cluster_class = ZooKeeperCluster
