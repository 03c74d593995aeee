"""The process of a node."""

from __future__ import annotations

from harness.contracts import Cluster, Direction, Killable, Pausable, Severable, Stoppable, Upgradable
from harness.testing.returning import LIMIT_S, ends_and_comes_back, wait_registered
from harness.waiting import wait_until


def check_pausable(_cluster: Cluster, node: Pausable, limit_s: float = LIMIT_S) -> None:
    """Check that a paused node answers no requests, answers again when resumed, and that resuming is idempotent."""
    node.resume()
    assert not node.paused()
    towards = (
        [link for link in node.links() if link.destination == node.name]
        if isinstance(node, Severable)
        else []
    )
    try:
        node.pause()
        wait_until(node.paused, limit_s, f"{node.name} is not paused")
        if isinstance(node, Severable):
            assert not node.passes(towards[0])[Direction.REQUESTS], f"{node.name} is paused and yet answers"
    finally:
        node.resume()
        node.resume()
    wait_until(lambda: not node.paused(), limit_s, f"{node.name} is still paused")
    if isinstance(node, Severable):
        wait_until(lambda: all(node.passes(towards[0]).values()), limit_s, f"{node.name} does not answer")


def check_killable(cluster: Cluster, node: Killable, limit_s: float = LIMIT_S) -> None:
    """Check that kill returns after the process has ended, restart after it has rejoined, and that both are idempotent."""
    ends_and_comes_back(cluster, node, node.kill, limit_s)


def check_stoppable(cluster: Cluster, node: Stoppable, limit_s: float = LIMIT_S) -> None:
    """Check that an orderly stop ends the process."""
    ends_and_comes_back(cluster, node, node.shut_down, limit_s)


def check_upgradable(cluster: Cluster, node: Upgradable, limit_s: float = LIMIT_S) -> None:
    """Check that the node reports its version and features, also after an upgrade to the version that it has."""
    version, was_registered = node.version(), node.name in cluster.view().registered_brokers()
    assert all(lowest <= highest for lowest, highest in node.features().values())
    node.upgrade(version)
    assert node.running()
    wait_until(lambda: node.version() == version, limit_s, f"{node.name} does not report {version}")
    if was_registered:
        wait_registered(cluster, node.name, limit_s)


checks = {
    Pausable: check_pausable,
    Killable: check_killable,
    Stoppable: check_stoppable,
    Upgradable: check_upgradable,
}
