"""Between two runs on one cluster: ended and paused nodes run again, and a cluster that cannot be used says why."""

from __future__ import annotations

from harness.contracts import Cluster, Killable, Pausable, Shared
from harness.waiting import in_parallel


def bring_back(cluster: Cluster) -> list[str]:
    """Resume paused nodes and start ended ones; return what was done, a few words for each node.

    Faults undo themselves. But an undo can fail, on an overloaded machine for example, and without this every later run
    on the cluster would prove nothing. Nodes of a cluster with other users are left alone.
    """
    if isinstance(cluster, Shared):
        return []
    paused = [node for node in cluster.nodes() if isinstance(node, Pausable) and node.paused()]
    for node in paused:
        node.resume()
    ended = [node for node in cluster.nodes() if isinstance(node, Killable) and not node.running()]
    # In parallel: a quorum that went down as a whole only comes back as a whole.
    in_parallel(lambda node: node.restart(), ended)
    return [f"{node.name} was still paused" for node in paused] + [
        f"{node.name} did not run" for node in ended
    ]


def why_unusable(cluster: Cluster) -> str:
    """Return why a cluster cannot be used for the next run; empty: it answers, all brokers are there, no fault left anything."""
    try:
        view = cluster.view()
        registered = set(view.registered_brokers())
        gone = sorted(set(view.broker_places()) - registered)
        residue = list(cluster.residue())
    except Exception as error:  # noqa: BLE001  with any error the cluster cannot be used
        return f"it does not answer: {error}"
    if gone or not registered:
        return f"{', '.join(gone) or 'every broker'} not registered"
    return f"a fault left {residue[0]}" if residue else ""
