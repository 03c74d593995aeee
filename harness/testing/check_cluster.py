"""Check that a cluster fulfils its contract. `check_cluster` takes a started cluster and stops it at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from harness import registry
from harness.contracts import POWERS, Cluster, ClusterKind, Killable, Lane
from harness.testing import powers

if TYPE_CHECKING:
    from harness.cluster_options import Choice

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
    described = cluster.describe()
    assert described.kind in registry.names("cluster"), f"{described.kind} is a value of --cluster"
    assert list(described.steps_s)[-1:] == ["ready"], (
        f"steps of a start end with `ready`: {described.steps_s}"
    )
    assert all(seconds >= 0 for seconds in described.steps_s.values())
    json.dumps(described.as_data())


def check_kind(name: str, choice: Choice, folder: Path) -> None:
    """Check that a kind makes a cluster from the user's options, and that nothing of it runs or is on disk yet."""
    kind: ClusterKind = registry.load("cluster", name)
    cluster = kind.chosen(choice, folder)
    described = cluster.describe()
    assert described.kind == name
    assert not described.steps_s, "it is not started"
    assert not list(cluster.nodes())
    assert not folder.exists()
    json.dumps(described.as_data())


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
