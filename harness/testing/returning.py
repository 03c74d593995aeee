"""Nodes that end and come back, and the limit of all checks of powers."""

from __future__ import annotations

from collections.abc import Callable

from harness.contracts import Cluster, Killable
from harness.waiting import wait_until

LIMIT_S = 30.0  # for an effect to begin or to end


def ends_and_comes_back(cluster: Cluster, node: Killable, end: Callable[[], object], limit_s: float) -> None:
    """Check that `end` returns after the process has ended, restart after it has rejoined, and that both are idempotent."""
    was_registered = node.name in cluster.view().registered_brokers()
    node.restart()
    assert node.running(), "restart leaves a running node alone"
    try:
        end()
        assert not node.running(), f"{node.name} still runs"
        end()
    finally:
        node.restart()
    assert node.running()
    if was_registered:
        wait_registered(cluster, node.name, limit_s)


def wait_registered(cluster: Cluster, name: str, limit_s: float) -> None:
    wait_until(
        lambda: name in cluster.view().registered_brokers(), limit_s, f"{name} is not registered again"
    )
