"""A node's clock, its share of CPU time, and its memory."""

from __future__ import annotations

from harness.contracts import Cluster, Killable, MemoryStarvable, Skewable, Starvable
from harness.errors import FaultError
from harness.testing.returning import LIMIT_S
from harness.waiting import wait_until

_SHARE = 0.1
_SKEW_S = 60.0


def check_skewable(cluster: Cluster, node: Skewable, limit_s: float = LIMIT_S) -> None:
    """Check that the node's clock is wrong while it is set wrong. Only brokers and the active controller report theirs."""
    if node.name not in (*cluster.view().registered_brokers(), cluster.view().active_controller()):
        return
    node.right_clock()
    try:
        node.skew_clock(_SKEW_S)
        wait_until(lambda: abs(node.clock_offset_s() - _SKEW_S) < 1, limit_s, f"{node.name} keeps its clock")
    finally:
        node.right_clock()
        node.right_clock()
    wait_until(lambda: abs(node.clock_offset_s()) < 1, limit_s, f"the clock of {node.name} is still wrong")


def check_starvable(_cluster: Cluster, node: Starvable, limit_s: float = LIMIT_S) -> None:
    """Check that a starved node gets its share of a processor under load, and more afterwards."""
    try:
        assert node.starve(_SHARE)
        assert node.cpu_under_load(3.0) <= 1.5 * _SHARE, f"{node.name} is not starved"
    finally:
        node.feed()
        node.feed()
    wait_until(lambda: node.cpu_under_load(1.0) > 1.5 * _SHARE, limit_s, f"{node.name} is still starved")


def check_memory_starvable(_cluster: Cluster, node: MemoryStarvable, limit_s: float = LIMIT_S) -> None:
    """Check that the kernel limits the memory of the node, and no longer does afterwards.

    A node that is refused memory may end, also a moment after the limit is gone; it is then started again.
    """
    try:
        assert node.take_memory(64.0)
        wait_until(lambda: _limited(node) is not False, limit_s, f"the memory of {node.name} has no limit")
    finally:
        node.give_memory()
        node.give_memory()

    def free_again() -> bool:
        if isinstance(node, Killable):
            node.restart()
        return _limited(node) is False

    wait_until(free_again, limit_s, f"{node.name} is still short of memory")


def _limited(node: MemoryStarvable) -> bool | None:
    """Return whether the kernel limits the node's memory under load; None if the node ended or is ending."""
    try:
        return node.memory_under_load(0.5).limit_mb is not None
    except FaultError:
        return None


checks = {Skewable: check_skewable, Starvable: check_starvable, MemoryStarvable: check_memory_starvable}
