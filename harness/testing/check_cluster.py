"""Check that a cluster fulfils its contract. `check_cluster` takes a started cluster and stops it at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from harness.contracts import POWERS, Cluster, Killable, Lane
from harness.testing import powers

Check = Callable[..., None]  # of a cluster, a node, and the seconds that an effect may take


def check_cluster(cluster: Cluster, logs: Path) -> None:
    """Check everything: the metadata of a started cluster, the powers of its nodes, and its end."""
    check_started(cluster)
    checks = checks_of_powers()
    for node in cluster.nodes():
        for power in reversed(POWERS):  # those that end the process come last
            if isinstance(node, power):
                checks[power](cluster, node)
    assert list(cluster.residue()) == [], "nothing is left of the checks"
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


def checks_of_powers() -> Mapping[type, Check]:
    """Return the check of each power, found by listing harness/testing/powers."""
    modules = [import_module(f"{powers.__name__}.{found.name}") for found in iter_modules(powers.__path__)]
    return {power: check for module in modules for power, check in module.checks.items()}


def check_stop(cluster: Cluster, logs: Path) -> None:
    """Check that nothing runs after stop, that stop is idempotent, and that logs can be collected after it."""
    cluster.stop()
    cluster.stop()
    assert not [node.name for node in cluster.nodes() if isinstance(node, Killable) and node.running()]
    cluster.collect_logs(logs)
    assert [log for log in logs.iterdir() if log.stat().st_size], f"logs in {logs}"
