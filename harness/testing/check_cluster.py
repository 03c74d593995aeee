"""Check that a cluster fulfils its contract. `check_cluster` takes a started cluster and stops it at the end."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.contracts import (
    Cluster,
    Cut,
    Direction,
    DiskBreakable,
    DiskFault,
    DiskHarm,
    Killable,
    Lane,
    Pausable,
    Severable,
)
from harness.waiting import wait_until

BOTH_WAYS = {Direction.REQUESTS: True, Direction.ANSWERS: True}


def check_cluster(cluster: Cluster, logs: Path) -> None:
    """Check everything: the metadata of a started cluster, the powers of its nodes, and its end."""
    check_started(cluster)
    for node in cluster.nodes():
        if isinstance(node, Severable):
            check_severable(node)
        if isinstance(node, DiskBreakable):
            check_disk_breakable(cluster, node)
        if isinstance(node, Pausable):
            check_pausable(node)
        if isinstance(node, Killable):
            check_killable(cluster, node)
    check_stop(cluster, logs)


def check_started(cluster: Cluster) -> None:
    """Check that every lane has an address, nodes have unique names, and brokers are registered."""
    lanes = [cluster.bootstrap_servers(lane) for lane in Lane]
    assert all(lanes), "every lane has an address"
    names = [node.name for node in cluster.nodes()]
    assert len(set(names)) == len(names), f"names are unique: {names}"
    registered = cluster.view().registered_brokers()
    assert registered, "brokers are registered"
    assert set(registered) <= set(names), f"{registered} are nodes: {names}"
    assert cluster.view().active_controller() in names
    json.dumps(cluster.describe())


def check_severable(node: Severable) -> None:
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
                f"{chosen} is cut, only it: {untouched}"
            )
        finally:
            node.mend()
            node.mend()
        wait_until(lambda: all(node.passes(chosen).values()), 20.0, f"{chosen} does not pass after mending")


def check_disk_breakable(cluster: Cluster, node: DiskBreakable) -> None:
    """Check that an append takes at least the delay while the disk is broken, and less afterwards."""
    view = cluster.view()
    node.mend_disk()
    try:
        node.break_disk(DiskFault(DiskHarm.SLOW_APPEND, delay_ms=200, topics_prefix="no-such-topic"))
        assert min(view.produce_round_trip_ms(node.name) for _ in range(3)) >= 200
    finally:
        node.mend_disk()
        node.mend_disk()
    wait_until(lambda: view.produce_round_trip_ms(node.name) < 200, 20.0, f"{node.name} still appends slowly")


def check_pausable(node: Pausable) -> None:
    """Check that a paused node answers no requests, answers again when resumed, and that resuming is idempotent."""
    node.resume()
    if not isinstance(node, Severable):
        return
    towards = next(link for link in node.links() if link.destination == node.name)
    try:
        node.pause()
        assert not node.passes(towards)[Direction.REQUESTS], f"{node.name} is paused and yet answers"
    finally:
        node.resume()
        node.resume()
    wait_until(
        lambda: all(node.passes(towards).values()), 20.0, f"{node.name} does not answer after resuming"
    )


def check_killable(cluster: Cluster, node: Killable) -> None:
    """Check that kill returns after the process has ended, restart after it has rejoined, and that both are idempotent."""
    was_registered = node.name in cluster.view().registered_brokers()
    node.restart()
    assert node.running(), "restart leaves a running node alone"
    try:
        node.kill()
        assert not node.running()
        node.kill()
    finally:
        node.restart()
    assert node.running()
    if was_registered:
        wait_until(
            lambda: node.name in cluster.view().registered_brokers(),
            30.0,
            f"{node.name} is not registered again",
        )


def check_stop(cluster: Cluster, logs: Path) -> None:
    """Check that nothing runs after stop, that stop is idempotent, and that logs can be collected after it."""
    cluster.stop()
    cluster.stop()
    assert not [node.name for node in cluster.nodes() if isinstance(node, Killable) and node.running()]
    cluster.collect_logs(logs)
    assert [log for log in logs.iterdir() if log.stat().st_size], f"logs in {logs}"
