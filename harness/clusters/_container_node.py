"""The nodes of a cluster of containers: a server in a container with all powers that are possible there."""

from __future__ import annotations

from harness.clusters._container import KafkaContainer
from harness.clusters._container_links import ContainerLinks
from harness.clusters._disked import Disked
from harness.clusters._linked import Linked
from harness.clusters._starved import cpu_under_load


class StarvedContainer(KafkaContainer):
    """Starvable: the engine gives the container's control group less of the processors, also after a restart."""

    def starve(self, cpu_share: float) -> str:
        self.contained.limit_cpu(cpu_share)
        return "cgroup"

    def feed(self) -> None:
        if self.contained.cpu_is_limited():
            self.contained.limit_cpu(None)

    def cpu_under_load(self, for_s: float) -> float:
        return cpu_under_load(self, for_s)

    def residue(self) -> list[str]:
        starved = [f"{self.name} is starved"] if self.contained.cpu_is_limited() else []
        return super().residue() + starved


class ContainerNode(Linked, StarvedContainer):
    """A node; as it stands, a controller."""

    links_of_cluster: ContainerLinks

    def launch(self) -> None:
        super().launch()
        self.links_of_cluster.renew(self.name)  # cuts are gone with the network that it had before


class ContainerBroker(Disked, ContainerNode):
    """A broker, also one that is a controller as well."""
