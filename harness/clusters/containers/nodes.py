"""The nodes of a cluster of containers: servers in containers with all powers that are possible there."""

from __future__ import annotations

from functools import cached_property

from harness.clusters.containers.container import KafkaContainer
from harness.clusters.containers.disk_rate import Throttled
from harness.clusters.containers.links import ContainerLinks
from harness.clusters.containers.mount import EngineMount
from harness.clusters.disk.mount import Mount
from harness.clusters.links.mesh import LANE_PORTS
from harness.clusters.powers.cpu import busy, cpu_under_load
from harness.clusters.powers.held_requests import Holding
from harness.clusters.powers.links import Linked
from harness.clusters.powers.memory import Squeezed
from harness.contracts import Lane
from harness.errors import ClusterError, FaultError

_FIRST_HOLDER_PORT = 24000
_RECORDS, _RECORD_KB = 20, 800  # more than twice what starve leaves by default


class StarvedContainer(KafkaContainer):
    """Starvable: the engine limits the CPU share of the container's control group, also after a restart."""

    def starve(self, cpu_share: float) -> str:
        self.contained.limit_cpu(cpu_share)
        return "cgroup"

    def feed(self) -> None:
        if self.contained.cpu_is_limited():
            self.contained.limit_cpu(None)

    def cpu_under_load(self, for_s: float) -> float:
        return cpu_under_load(self, for_s, self.keep_busy)

    def keep_busy(self, for_s: float) -> None:
        busy(self, for_s)

    def residue(self) -> list[str]:
        starved = [f"{self.name} is starved"] if self.contained.cpu_is_limited() else []
        return super().residue() + starved


class ContainerNode(Linked, Squeezed, StarvedContainer):
    """A node; without additions, a controller."""

    links_of_cluster: ContainerLinks

    def launch(self) -> None:
        super().launch()
        self.links_of_cluster.renew(self.name)  # its cuts ended with its former network


class ContainerBroker(Throttled, Holding, ContainerNode):
    """A broker, possibly combined with a controller."""

    def launch(self) -> None:
        if self.options.fuse:
            self._mount.ensure()
            self._mount.be(self._orders())  # after a restart of the mount, the disk is as bad as before
        super().launch()

    def ask_for_memory(self, for_s: float) -> None:
        """Make the broker use memory, and read a log from the disk to fill the page cache.

        A restarted container has a new control group, where the page cache from before does not count: without this
        there would be no cache to limit, and only Java would wait for memory.
        """
        try:
            while len(self._read_again) < _RECORDS:
                self._read_again.append(self.append_kb(_RECORD_KB)[0])
            self.fetch_from_disk(self._read_again)
        except ClusterError as error:
            raise FaultError(str(error)) from error
        super().ask_for_memory(for_s)

    @cached_property
    def _read_again(self) -> list[int]:
        return []

    @cached_property
    def _mount(self) -> Mount:
        return EngineMount(self.folder, self.data, self.contained.yard.engine)

    def holder_listens(self) -> str:
        """Return this machine's address as containers see it; nodes share it, so each has its own port."""
        gateway = self.contained.wanted.address.rpartition(".")[0] + ".1"
        return f"{gateway}:{_FIRST_HOLDER_PORT + self.member.id}"

    def behind_holder(self, lane: Lane) -> str:
        return f"{self.contained.wanted.address}:{LANE_PORTS[lane]:d}"
