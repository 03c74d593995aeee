"""All links of a cluster of containers: client lanes by Toxiproxy, links between nodes by packet filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from harness.clusters.links.links import Links
from harness.clusters.links.mesh import Mesh
from harness.clusters.links.packet_filter import PacketLinks
from harness.clusters.links.toxiproxy import Toxiproxy
from harness.contracts import Cut, Direction, Link, Questions, Talk


class ContainerLinks(Links):
    """Only lanes can be shaped. Without `packets` (which needs root) there are only lanes."""

    def __init__(self, mesh: Mesh, toxiproxy: Toxiproxy, packets: PacketLinks | None) -> None:
        super().__init__(mesh, toxiproxy)
        self._packets = packets

    def of(self, name: str) -> Sequence[Link]:
        between = self._packets.of(name) if self._packets is not None else ()
        return [*between, *super().of(name)]

    def shapeable(self, name: str) -> Sequence[Link]:
        return super().of(name)

    def sever(self, cuts: Sequence[Cut], by: str) -> None:
        between = [cut for cut in cuts if self._filtering(cut.link)]
        if between and self._packets is not None:
            self._packets.sever(between, by)
        super().sever([cut for cut in cuts if not self._filtering(cut.link)], by)

    def take_back(self, by: str) -> None:
        if self._packets is not None:
            self._packets.take_back(by)
        super().take_back(by)

    def doers(self) -> list[str]:
        between = self._packets.doers() if self._packets is not None else []
        return list(dict.fromkeys([*between, *super().doers()]))

    def passes(self, link: Link) -> Mapping[Direction, bool]:
        packets = self._filtering(link)
        return packets.passes(link) if packets else super().passes(link)

    def talk(self, link: Link, questions: Questions) -> Talk:
        packets = self._filtering(link)
        return packets.talk(link, questions) if packets else super().talk(link, questions)

    def long_question(
        self, link: Link, topic: str, partition: int, wait_s: float
    ) -> AbstractContextManager[Callable[[float], bool]]:
        packets = self._filtering(link)
        ask = packets.long_question if packets else super().long_question
        return ask(link, topic, partition, wait_s)

    def renew(self, name: str) -> None:
        """Restore the cuts of a node that was started again and so has a new network."""
        if self._packets is not None:
            self._packets.renew(name)

    def residue(self) -> list[str]:
        between = self._packets.residue() if self._packets is not None else []
        return [*between, *super().residue()]

    def _filtering(self, link: Link) -> PacketLinks | None:
        """Return the packet filter that handles the link; None if Toxiproxy does."""
        if self._packets is not None and link in self._packets.of(link.destination):
            return self._packets
        return None
