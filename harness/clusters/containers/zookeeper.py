"""Kafka brokers with a ZooKeeper ensemble in containers: `--cluster docker --zookeeper`.

The servers reach each other directly on their network. So there is no proxy between a follower and a leader that does not
listen yet, and no gate as in a cluster of local processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from harness.clusters.containers.broker import ContainerBroker, ContainerNode
from harness.clusters.containers.cluster import DockerCluster
from harness.clusters.containers.container import ImageJvm
from harness.clusters.containers.host import Yard
from harness.clusters.ensemble.cluster import WithZooKeeper
from harness.clusters.ensemble.server import RegisteredBroker, ZooKeeperServer
from harness.clusters.links.mesh import Member
from harness.clusters.processes.java import ZOOKEEPER_CLASS
from harness.errors import UsageError
from harness.provision.kafka import LAST_WITH_ZOOKEEPER

_NOT_FOUND = "Could not find or load main class"


class ZooKeeperContainer(ZooKeeperServer, ContainerNode):
    pass


class RegisteredContainer(RegisteredBroker, ContainerBroker):
    pass


class DockerZooKeeperCluster(WithZooKeeper[ContainerNode], DockerCluster):
    """N brokers `broker-1…` and M servers `zookeeper-1…`, of which more than half have to run."""

    instead: ClassVar[str] = "leave out --zookeeper"

    def _formatter(self, yard: Yard, jvm: ImageJvm) -> Callable[[ContainerNode], None]:
        self._must_fit(jvm.kafka_version)  # jars provided by the user may be of another version
        if self._chosen_image:
            # Without a settings file it only prints its usage.
            words = [str(jvm.java), "-Xmx32m", "-cp", jvm.classpath, ZOOKEEPER_CLASS]
            _code, said = yard.run(self._chosen_image, words, self.folder)
            if _NOT_FOUND in said:
                raise UsageError(
                    f"--image {self._chosen_image} has no ZooKeeper; use an image of Kafka {LAST_WITH_ZOOKEEPER} or older,"
                    f" or {self.instead}"
                )
        return self._prepare

    def _kind_of(self, member: Member) -> type[ContainerNode]:
        return ZooKeeperContainer if member.zookeeper else RegisteredContainer
