"""Whether a scenario can be run on a cluster whose nodes do not have all powers."""

from __future__ import annotations

from harness.contracts import Cluster, Node, WorkerNode
from harness.scenario import Scenario
from harness.targets import WORKER_ROLES


def impossible(scenario: Scenario, cluster: Cluster) -> str | None:
    """Why not: a fault of its schedule needs a power that no node of the cluster has. None: it can be tried.

    Only of a cluster that runs already this is no mistake: there the user says what may be done to it.
    """
    if cluster.describe()["kind"] != "existing":
        return None
    for window in scenario.schedule:
        needs, target = window.fault.needs, window.on
        of_workers = target.describe().get("target") in WORKER_ROLES
        if needs in (Node, WorkerNode) or of_workers:
            continue
        if not any(isinstance(node, needs) for node in cluster.nodes()):
            return (
                f"{scenario.name}: {window.fault} on {target} needs a power that no node of this cluster has "
                f"({needs.__name__}); --powers FILE.toml gives nodes powers by commands"
            )
    return None
