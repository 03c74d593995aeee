"""The arena of a run: its cluster, its workers and its topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.contracts import Cluster, Node, TopicSettings
from harness.workers.pool import Workers


@dataclass(frozen=True)
class RunArena:
    """The part of a running run that faults and targets may use."""

    cluster: Cluster
    topic: str
    group: str
    workers: Workers
    more_topics: Mapping[str, TopicSettings] = field(default_factory=dict)  # in the order of their numbers
    patience: float = 1.0

    @property
    def topics(self) -> list[str]:
        return [self.topic, *self.more_topics]

    def nodes(self) -> Sequence[Node]:
        return [*self.cluster.nodes(), *self.workers.all]
