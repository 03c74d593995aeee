"""Whether a scenario can be run on a cluster whose nodes do not have all powers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.contracts import Cluster, Mode, Node, WorkerNode
from harness.kafka.optional_requests import TRANSACTIONS
from harness.scenario import Scenario
from harness.targets import WORKER_ROLES

# Requests that a mode cannot do without, of those that a broker may lack.
_REQUESTS: Mapping[Mode, Sequence[str]] = {
    Mode.AT_MOST_ONCE: (),
    Mode.AT_LEAST_ONCE: (),
    Mode.IDEMPOTENT: ("InitProducerId",),
    Mode.EXACTLY_ONCE: TRANSACTIONS,
}


def impossible(scenario: Scenario, cluster: Cluster) -> str | None:
    """Why not: it needs a power that no node of the cluster has, or a request that its brokers do not offer.

    None: it can be tried. Only an existing cluster may lack something; for our own clusters that is a bug.
    """
    described = cluster.describe()
    if described["kind"] != "existing":
        return None
    absent = set(described.get("lacking", ()))
    if missing := [name for name in _REQUESTS[scenario.mode] if name in absent]:
        return f"{scenario.name}: {scenario.mode} needs {missing[0]}, which the brokers do not offer"
    for window in scenario.schedule:
        needs, target = window.fault.needs, window.on
        if missing := [name for name in getattr(window.fault, "requests", ()) if name in absent]:
            return f"{scenario.name}: {window.fault} needs {missing[0]}, which the brokers do not offer"
        of_workers = target.describe().get("target") in WORKER_ROLES
        if needs in (Node, WorkerNode) or of_workers:
            continue
        if not any(isinstance(node, needs) for node in cluster.nodes()):
            return (
                f"{scenario.name}: {window.fault} on {target} needs a power that no node of this cluster has "
                f"({needs.__name__}); --powers FILE.toml gives nodes powers by commands"
            )
    return None
