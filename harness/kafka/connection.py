"""Client settings for a cluster, and the names that the harness may use on it."""

from __future__ import annotations

from typing import Any

from harness.contracts import Cluster, Lane, Shared
from harness.errors import UsageError

TOPIC_PREFIX = "onceproof-"  # disk faults hit only the logs of topics with this prefix


def settings(cluster: Cluster, lane: Lane = Lane.CONTROL, **more: Any) -> dict[str, Any]:
    """Return the settings of a librdkafka client; names in `more` have _ for a dot. May contain secrets: never log it."""
    own = {name.replace("_", "."): value for name, value in more.items()}
    return {
        "bootstrap.servers": cluster.bootstrap_servers(lane),
        **cluster.client_settings(lane),
        "log_level": 0,  # errors are raised instead
        **own,
    }


def prefix_of(cluster: Cluster) -> str:
    """Return the prefix of every topic, group and transactional id that the harness creates."""
    return cluster.prefix if isinstance(cluster, Shared) else TOPIC_PREFIX


def ours(cluster: Cluster, name: str) -> str:
    """Return the name if the harness may create, change or delete it; raise UsageError if it lacks the prefix of a shared cluster."""
    if isinstance(cluster, Shared) and not name.startswith(cluster.prefix):
        raise UsageError(f"{name}: onceproof only touches names with the prefix {cluster.prefix} (--prefix)")
    return name
