"""The links of a node and the requests on them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from harness.contracts import (
    Cluster,
    Cut,
    Direction,
    HeldRequests,
    PeerSeverable,
    Questions,
    RequestHolding,
    Severable,
    Shapeable,
    Toxic,
)
from harness.testing.returning import LIMIT_S
from harness.waiting import wait_until

_DELAY_MS = 200
_END_TXN = 26


def check_severable(_cluster: Cluster, node: Severable, limit_s: float = LIMIT_S) -> None:
    """Check that each kind of cut affects its direction and link only, and that mending is idempotent."""
    links = list(node.links())
    assert links, f"{node.name} has links"
    assert all(node.name in (link.source, link.destination) for link in links)
    node.mend()
    chosen, *others = links
    for direction in Direction:
        try:
            node.sever([Cut(chosen, direction)])
            passing = dict(node.passes(chosen))
            expected = {
                Direction.REQUESTS: direction is Direction.ANSWERS,
                Direction.ANSWERS: direction is Direction.REQUESTS,
            }
            assert {way: passing[way] for way in expected} == expected, f"{chosen} cut {direction}: {passing}"
            with ThreadPoolExecutor(max_workers=max(1, len(others))) as pool:
                untouched = dict(zip(others, pool.map(node.passes, others), strict=True))
            assert all(all(ways.values()) for ways in untouched.values()), (
                f"only {chosen} is cut: {untouched}"
            )
        finally:
            node.mend()
            node.mend()
        wait_until(
            lambda: all(node.passes(chosen).values()), limit_s, f"{chosen} does not pass after mending"
        )


def check_peer_severable(cluster: Cluster, node: PeerSeverable, limit_s: float = LIMIT_S) -> None:
    """Check that a link with another node, if there is one, can be cut like one with clients."""
    links, names = list(node.peer_links()), [each.name for each in cluster.nodes()]
    assert set(links) <= set(node.links())
    assert all(link.source in names and link.destination in names for link in links)
    for link in links[:1]:
        try:
            node.sever([Cut(link)])
            assert not any(node.passes(link).values()), f"{link} is cut and yet passes"
        finally:
            node.mend()
        wait_until(lambda link=link: all(node.passes(link).values()), limit_s, f"{link} does not pass")  # type: ignore[misc]


def check_shapeable(_cluster: Cluster, node: Shapeable, limit_s: float = LIMIT_S) -> None:
    """Check that a delayed link takes the delay for a question, and less afterwards."""
    links = [link for link in node.shapeable_links() if link.destination == node.name]
    for link in links[:1]:
        node.unshape()
        try:
            node.shape([link], [Toxic("latency", {"latency": _DELAY_MS})])
            assert node.talk(link, Questions()).took_s >= _DELAY_MS / 1000, f"{link} is not delayed"
        finally:
            node.unshape()
            node.unshape()
        wait_until(
            lambda link=link: node.talk(link, Questions()).took_s < _DELAY_MS / 1000,  # type: ignore[misc]
            limit_s,
            f"{link} is still delayed",
        )


def check_request_holding(_cluster: Cluster, node: RequestHolding, _limit_s: float = LIMIT_S) -> None:
    """Check that a lane leads through the holder only while requests are held, and that releasing is idempotent."""
    node.release_requests()
    try:
        node.hold_requests(HeldRequests((_END_TXN,)))
        assert node.held_requests()["inserted"] == 1
    finally:
        node.release_requests()
        node.release_requests()
    assert node.held_requests()["inserted"] == 0


checks = {
    Severable: check_severable,
    PeerSeverable: check_peer_severable,
    Shapeable: check_shapeable,
    RequestHolding: check_request_holding,
}
