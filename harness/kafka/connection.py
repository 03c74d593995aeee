"""How any client of the harness is opened on a cluster, and what it may touch there."""

from __future__ import annotations

from typing import Any

from harness.contracts import Cluster, Lane, Shared
from harness.errors import UsageError

TOPIC_PREFIX = "onceproof-"  # disk faults hit the logs of topics with this prefix, and no other


def settings(cluster: Cluster, lane: Lane = Lane.CONTROL, **more: Any) -> dict[str, Any]:
    """Of a client of librdkafka; in `more` the names have _ for a dot. May hold secrets: never write it down."""
    own = {name.replace("_", "."): value for name, value in more.items()}
    return {
        "bootstrap.servers": cluster.bootstrap_servers(lane),
        **cluster.client_settings(lane),
        "log_level": 0,  # what goes wrong is raised
        **own,
    }


def prefix_of(cluster: Cluster) -> str:
    """What the names of all topics, groups and transactional ids of ours begin with."""
    return cluster.prefix if isinstance(cluster, Shared) else TOPIC_PREFIX


def ours(cluster: Cluster, name: str) -> str:
    """The name, which is of ours: of a cluster that others use too, nothing else is ever made, changed or deleted."""
    if isinstance(cluster, Shared) and not name.startswith(cluster.prefix):
        raise UsageError(f"{name} is not ours to touch: only what begins with {cluster.prefix} (--prefix) is")
    return name
