"""The powers that servers in containers can have."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from harness.clusters.base.composition import Power, Site
from harness.clusters.containers.broker import ContainerBroker
from harness.clusters.containers.container import KafkaContainer
from harness.clusters.containers.disk_rate import Throttled
from harness.clusters.containers.mount import EngineMount
from harness.clusters.disk.mount import Mount
from harness.clusters.links import packet_filter
from harness.clusters.links.mesh import LANE_PORTS
from harness.clusters.powers.cpu import cpu_under_load
from harness.clusters.powers.disk import Disked, PowerLosing
from harness.clusters.powers.held_requests import Holding
from harness.clusters.powers.links import PeerLinked
from harness.clusters.powers.memory import Squeezed
from harness.clusters.powers.slow_reads import ReadSlowing
from harness.contracts import Lane, PeerSeverable, Starvable
from harness.provision.docker.engine import find_engine

_FIRST_HOLDER_PORT = 24000
OTHERS_ENGINE = "FUSE disks need a Docker engine started by onceproof, but {} is already running; stop it or use --cluster local"


class StarvedContainer(Power, KafkaContainer):
    """The engine limits the CPU share of the container's control group, also after a restart."""

    gives: ClassVar[type] = Starvable

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


class DiskedContainer(Disked, ContainerBroker):
    def launch(self) -> None:
        if self.options.fuse:
            self._mount.ensure()
            self._mount.be(self._orders())  # after a restart of the mount, the disk is as bad as before
        super().launch()

    @cached_property
    def _mount(self) -> Mount:
        return EngineMount(self.folder, self.data, self.contained.yard.engine)


class PowerLosingContainer(PowerLosing):
    @classmethod
    def why_not(cls, site: Site, /) -> str | None:
        engine = None if site.options.fuse else find_engine()
        if engine is not None and engine.own is None:
            return OTHERS_ENGINE.format(engine.url)
        return super().why_not(site)


class HoldingContainer(Holding, KafkaContainer):
    def holder_listens(self) -> str:
        """Return this machine's address as containers see it; nodes share it, so each has its own port."""
        gateway = self.contained.wanted.address.rpartition(".")[0] + ".1"
        return f"{gateway}:{_FIRST_HOLDER_PORT + self.member.id}"

    def behind_holder(self, lane: Lane) -> str:
        return f"{self.contained.wanted.address}:{LANE_PORTS[lane]:d}"


class PeerLinkedContainer(Power, PeerLinked):
    gives: ClassVar[type] = PeerSeverable

    @classmethod
    def why_not(cls, _site: Site, /) -> str | None:
        return packet_filter.trouble()


POWERS_OF_NODES = (PeerLinkedContainer, Squeezed, StarvedContainer)
POWERS_OF_BROKERS = (
    ReadSlowing,
    Throttled,
    PowerLosingContainer,
    DiskedContainer,
    HoldingContainer,
    *POWERS_OF_NODES,
)
