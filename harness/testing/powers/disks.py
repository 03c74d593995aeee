"""The disk of a broker."""

from __future__ import annotations

from harness.contracts import (
    Cluster,
    DiskBreakable,
    DiskFault,
    DiskHarm,
    DiskThrottleable,
    FolderBreakable,
    PowerLosable,
    ReadSlowable,
)
from harness.errors import ClusterError
from harness.testing.returning import LIMIT_S, ends_and_comes_back, wait_registered
from harness.waiting import wait_until

_DELAY_MS = 200
_RATE_KB_S = 256


def check_disk_breakable(cluster: Cluster, node: DiskBreakable, limit_s: float = LIMIT_S) -> None:
    """Check that an append takes at least the delay while the disk is broken, and less afterwards."""
    view = cluster.view()
    node.mend_disk()
    try:
        node.break_disk(DiskFault(DiskHarm.SLOW_APPEND, delay_ms=_DELAY_MS, topics_prefix="no-such-topic"))
        assert min(view.produce_round_trip_ms(node.name) for _ in range(3)) >= _DELAY_MS
    finally:
        node.mend_disk()
        node.mend_disk()
    wait_until(
        lambda: view.produce_round_trip_ms(node.name) < _DELAY_MS,
        limit_s,
        f"{node.name} still appends slowly",
    )


def check_read_slowable(_cluster: Cluster, node: ReadSlowable, limit_s: float = LIMIT_S) -> None:
    """Check that a read takes at least the delay while reads are slow, and less afterwards."""
    try:
        node.break_disk(DiskFault(DiskHarm.SLOW_READ, delay_ms=_DELAY_MS, topics_prefix="no-such-topic"))
        assert min(node.read_latency_ms() for _ in range(3)) >= _DELAY_MS, f"{node.name} reads quickly"
    finally:
        node.mend_disk()
        node.mend_disk()
    wait_until(lambda: node.read_latency_ms() < _DELAY_MS, limit_s, f"{node.name} still reads slowly")


def check_disk_throttleable(_cluster: Cluster, node: DiskThrottleable, limit_s: float = LIMIT_S) -> None:
    """Check that an fsync of a second's worth of bytes takes that second, and less afterwards."""
    harm = DiskHarm.SLOW_FSYNC
    try:
        assert node.throttle_disk(harm, _RATE_KB_S)
        assert node.disk_rate_kb_s(harm, _RATE_KB_S) <= 1.3 * _RATE_KB_S, f"{node.name} is not throttled"
    finally:
        node.release_disk(harm)
        node.release_disk(harm)
    wait_until(
        lambda: node.disk_rate_kb_s(harm, _RATE_KB_S) > 2 * _RATE_KB_S, limit_s, f"{node.name} still is slow"
    )


def check_folder_breakable(cluster: Cluster, node: FolderBreakable, limit_s: float = LIMIT_S) -> None:
    """Check that a broken log folder refuses records, the first one does not, and that it accepts them again."""
    first, *others = node.folders()
    assert others, f"{node.name} has one log folder"
    for folder in (first, *others):
        node.append_to(folder)
    try:
        node.break_disk(DiskFault(DiskHarm.BROKEN, topics_prefix="no-such-topic", folder=others[0]))
        wait_until(
            lambda: not _accepts(node, others[0]), limit_s, f"{others[0]} of {node.name} is not broken"
        )
        node.append_to(first)
    finally:
        node.mend_disk()
        node.kill()  # Kafka uses a folder again after a restart
        node.restart()
    wait_until(lambda: _accepts(node, others[0]), limit_s, f"{others[0]} of {node.name} is still broken")
    wait_registered(cluster, node.name, limit_s)


def check_power_losable(cluster: Cluster, node: PowerLosable, limit_s: float = LIMIT_S) -> None:
    """Check that the process ends, and that the loss is counted."""
    lost: list[float] = []
    ends_and_comes_back(cluster, node, lambda: lost.append(node.lose_power()["bytes_lost"]), limit_s)
    assert min(lost) >= 0


def _accepts(node: FolderBreakable, folder: str) -> bool:
    try:
        node.append_to(folder)
    except ClusterError:
        return False
    return True


checks = {
    DiskBreakable: check_disk_breakable,
    DiskThrottleable: check_disk_throttleable,
    FolderBreakable: check_folder_breakable,
    PowerLosable: check_power_losable,
    ReadSlowable: check_read_slowable,
}
