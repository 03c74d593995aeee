"""A cluster and a topic without workers, for checks of single faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.clusters.base.cluster import ServerCluster
from harness.contracts import Node

TOPIC = "orders"


@dataclass(frozen=True)
class BareArena:
    cluster: ServerCluster[Any]
    topic: str = TOPIC
    patience: float = 1.0

    @property
    def group(self) -> str:
        return f"{self.topic}-group"

    def nodes(self) -> Sequence[Node]:
        return self.cluster.nodes()
