"""The nodes of a cluster of containers: a server in a container with all powers that are possible there."""

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
_RECORDS, _RECORD_KB = 20, 800  # twice of what starve leaves by default, and more


class StarvedContainer(KafkaContainer):
    """Starvable: the engine gives the container's control group less of the processors, also after a restart."""

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
    """A node; as it stands, a controller."""

    links_of_cluster: ContainerLinks

    def launch(self) -> None:
        super().launch()
        self.links_of_cluster.renew(self.name)  # cuts are gone with the network that it had before


class ContainerBroker(Throttled, Holding, ContainerNode):
    """A broker, also one that is a controller as well."""

    def launch(self) -> None:
        if self.options.fuse:
            self._mount.ensure()
            self._mount.be(self._orders())  # if it was started anew, the disk is as bad as before
        super().launch()

    def ask_for_memory(self, for_s: float) -> None:
        """It has to read a log from the disk as well, which fills the page cache.

        A container that was started again has a new control group, where the page cache from before does not count: there
        would be none of it to take away, and Java would be all that waits for memory.
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
        """On this machine, as containers see it; nodes share that address, so each has a port of its own."""
        gateway = self.contained.wanted.address.rpartition(".")[0] + ".1"
        return f"{gateway}:{_FIRST_HOLDER_PORT + self.member.id}"

    def behind_holder(self, lane: Lane) -> str:
        return f"{self.contained.wanted.address}:{LANE_PORTS[lane]:d}"
