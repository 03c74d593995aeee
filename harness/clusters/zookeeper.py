"""Kafka brokers with a ZooKeeper ensemble as local processes, every link behind a proxy of its own, as in local.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from harness.clusters._mesh import Member, Mesh, members_with_zookeeper
from harness.clusters._node import LocalNode
from harness.clusters._options import PLAIN, Options
from harness.clusters._settings import zookeeper_properties
from harness.clusters._zookeeper import ZooKeeperBroker, ZooKeeperNode, ZooKeeperView
from harness.clusters.local import LocalCluster
from harness.errors import UsageError
from harness.provision.kafka import LAST_WITH_ZOOKEEPER

if TYPE_CHECKING:
    from harness.choice import Choice


class ZooKeeperCluster(LocalCluster):
    """N brokers `broker-1…` and M servers `zookeeper-1…`, of which more than half have to live."""

    kind = "zookeeper"

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
        if not 3 <= zookeepers <= 40:
            raise UsageError(f"zookeepers={zookeepers}: an ensemble has 3 to 40 servers")
        _must_know_zookeeper(kafka_version)
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
        if choice.combined:
            raise UsageError("--combined: brokers with ZooKeeper are no nodes of KRaft; leave it out")
        return cls(
            folder, kafka_version=choice.kafka, broker_settings=choice.settings, options=choice.options
        )

    def view(self) -> ZooKeeperView:
        self._started()
        return ZooKeeperView(self._nodes)

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "zookeepers": len([m for m in self._members if m.zookeeper])}

    def _lay_out(self, brokers: int, controllers: int, combined: bool) -> tuple[Member, ...]:
        return members_with_zookeeper(brokers, controllers)

    def _formatter(self) -> Callable[[LocalNode], None]:
        for jvm in self._jvms.values():  # jars that were given by hand may be of another version
            _must_know_zookeeper(jvm.kafka_version)
        return self._prepare

    def _prepare(self, node: LocalNode) -> None:
        node.data.mkdir(parents=True)
        if node.member.zookeeper:
            (node.data / "myid").write_text(f"{node.member.place}\n", encoding="ascii")
        if isinstance(node, ZooKeeperBroker):
            node.ensemble = [each for each in self._nodes if isinstance(each, ZooKeeperNode)]

    def _kind_of(self, member: Member) -> type[LocalNode]:
        return ZooKeeperNode if member.zookeeper else ZooKeeperBroker

    def _properties(self, mesh: Mesh, member: Member, data: Path, version: str) -> Mapping[str, str]:
        if member.zookeeper:
            return zookeeper_properties(mesh, member, data)
        return super()._properties(mesh, member, data, version)


def _must_know_zookeeper(kafka_version: str) -> None:
    major = kafka_version.partition(".")[0]
    if major.isdecimal() and int(major) >= 4:
        raise UsageError(
            f"Kafka {kafka_version} knows no ZooKeeper: give --kafka {LAST_WITH_ZOOKEEPER} or older, or --cluster local"
        )


cluster_class = ZooKeeperCluster
