"""A cluster with ZooKeeper: how it differs from other clusters, with servers as processes or in containers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from harness.clusters.base.broker_properties import zookeeper_properties
from harness.clusters.base.cluster import N, ServerCluster
from harness.clusters.base.server import Server
from harness.clusters.ensemble.server import RegisteredBroker, ZooKeeperServer, ZooKeeperView
from harness.clusters.links.mesh import Member, Mesh, members_with_zookeeper
from harness.errors import UsageError
from harness.provision.kafka import LAST_WITH_ZOOKEEPER, numbers_of

if TYPE_CHECKING:
    from harness.cluster_options import Choice

_FIRST_WITHOUT = (4,)


class WithZooKeeper(ServerCluster[N]):
    """Mixin for a kind of cluster: brokers `broker-1…` with servers `zookeeper-1…` instead of controllers."""

    instead: ClassVar[str]  # advice for users whose version does not support ZooKeeper

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 3,
        zookeepers: int = 3,
        kafka_version: str = LAST_WITH_ZOOKEEPER,
        **others: Any,  # as the kind without ZooKeeper has them
    ) -> None:
        if not 3 <= zookeepers <= 40:
            raise UsageError(f"zookeepers={zookeepers}: choose 3 to 40 servers")
        super().__init__(
            folder, brokers=brokers, controllers=zookeepers, **{"kafka_version": kafka_version, **others}
        )

    @classmethod
    def _settings_of(cls, choice: Choice) -> dict[str, Any]:
        if choice.combined:
            raise UsageError("--combined: only KRaft has combined nodes; leave it out with ZooKeeper")
        return super()._settings_of(choice)

    def view(self) -> ZooKeeperView:
        self._started()
        return ZooKeeperView(self._nodes)

    def _must_fit(self, kafka_version: str) -> None:
        if numbers_of(kafka_version) >= _FIRST_WITHOUT:
            raise UsageError(
                f"Kafka {kafka_version} does not support ZooKeeper; use --kafka {LAST_WITH_ZOOKEEPER} or older, or {self.instead}"
            )

    def _lay_out(self, brokers: int, controllers: int, combined: bool) -> tuple[Member, ...]:
        return members_with_zookeeper(brokers, controllers)

    def _laid_out(self) -> Mapping[str, Any]:
        return {**super()._laid_out(), "zookeepers": len([m for m in self._members if m.zookeeper])}

    def _properties(self, mesh: Mesh, member: Member, data: Path, version: str) -> Mapping[str, str]:
        if member.zookeeper:
            return zookeeper_properties(mesh, member, data)
        return super()._properties(mesh, member, data, version)

    def _prepare(self, node: Server) -> None:
        """Prepare the data folder before the first start; brokers write their own ids."""
        node.data.mkdir(parents=True)
        if node.member.zookeeper:
            (node.data / "myid").write_text(f"{node.member.place}\n", encoding="ascii")
        if isinstance(node, RegisteredBroker):
            node.ensemble = [each for each in self._nodes if isinstance(each, ZooKeeperServer)]
