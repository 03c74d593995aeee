"""The power over a node's links: Severable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.clusters._server import Server
from harness.contracts import Cut, Direction, Link
from harness.errors import FaultError


class Linked(Server):
    def links(self) -> Sequence[Link]:
        return self.links_of_cluster.of(self.name)

    def sever(self, cuts: Sequence[Cut]) -> None:
        strangers = [cut.link for cut in cuts if self.name not in (cut.link.source, cut.link.destination)]
        if strangers:
            raise FaultError(f"{self.name} is at no end of {', '.join(map(str, strangers))}")
        self.links_of_cluster.sever(cuts, by=self.name)

    def mend(self) -> None:
        self.links_of_cluster.mend(by=self.name)

    def passes(self, link: Link) -> Mapping[Direction, bool]:
        return self.links_of_cluster.passes(link)
