"""The powers over a node's links: Severable and Shapeable, and PeerSeverable where links between nodes can be cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from harness.clusters.base.server import Server
from harness.contracts import Cut, Direction, Lane, Link, Questions, Talk, Toxic
from harness.errors import FaultError


class Linked(Server):
    def links(self) -> Sequence[Link]:
        return self.links_of_cluster.of(self.name)

    def sever(self, cuts: Sequence[Cut], by: str = "") -> None:
        self._must_end_here(cut.link for cut in cuts)
        self.links_of_cluster.sever(cuts, self._doer("cut", by))

    def mend(self, by: str | None = None) -> None:
        self._take_back("cut", by)

    def passes(self, link: Link) -> Mapping[Direction, bool]:
        return self.links_of_cluster.passes(link)

    def shapeable_links(self) -> Sequence[Link]:
        return self.links_of_cluster.shapeable(self.name)

    def shape(self, links: Sequence[Link], toxics: Sequence[Toxic], by: str = "") -> None:
        self._must_end_here(links)
        self.links_of_cluster.shape(
            [(link, toxic) for link in links for toxic in toxics], self._doer("shaped", by)
        )

    def unshape(self, by: str | None = None) -> None:
        self._take_back("shaped", by)

    def talk(self, link: Link, questions: Questions) -> Talk:
        return self.links_of_cluster.talk(link, questions)

    def long_question(
        self, link: Link, topic: str, partition: int, wait_s: float
    ) -> AbstractContextManager[Callable[[float], bool]]:
        return self.links_of_cluster.long_question(link, topic, partition, wait_s)

    def _doer(self, what: str, by: str) -> str:
        """Return the name of a change; names of toxics contain it, so that leftovers can be traced to their fault."""
        return f"{what}.{self.name}.{by}"

    def _take_back(self, what: str, by: str | None) -> None:
        own = self._doer(what, by or "")
        for doer in self.links_of_cluster.doers():
            if doer == own or (by is None and doer.startswith(own)):
                self.links_of_cluster.take_back(doer)

    def _must_end_here(self, links: Iterable[Link]) -> None:
        strangers = [str(link) for link in links if self.name not in (link.source, link.destination)]
        if strangers:
            raise FaultError(f"{self.name} is at no end of {', '.join(strangers)}")


class PeerLinked(Linked):
    def peer_links(self) -> Sequence[Link]:
        return [link for link in self.links() if link.source not in list(Lane)]
