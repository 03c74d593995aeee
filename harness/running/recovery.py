"""Nodes that an earlier run left ended or paused run again before the next one."""

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
