"""Watch the leaders and in-sync sets of a run's topics, and record each change for the report."""

from __future__ import annotations

from collections.abc import Sequence

from harness.contracts import Cluster, PartitionState
from harness.ledger.journal import EventLog

LOOK_EVERY_S = 1.0
MOST_EVENTS = 20_000  # of a run; a topic that changes more often is not recorded any further


class LeaderWatch:
    """`look` asks for the partitions of one topic, a different one each time, so each look costs the same.

    The first look at a topic records the state of all its partitions, later looks record the partitions that changed.
    """

    def __init__(
        self, cluster: Cluster, topics: Sequence[str], events: EventLog, most: int = MOST_EVENTS
    ) -> None:
        self._cluster, self._topics, self._events, self._most = cluster, topics, events, most
        self._last: dict[tuple[int, int], tuple[object, ...]] = {}  # by topic and partition
        self._looks = self._written = 0

    def look(self) -> None:
        topic = self._looks % len(self._topics)
        self._looks += 1
        for state in self._cluster.view().partitions(self._topics[topic]):
            self._record(topic, state)

    def _record(self, topic: int, state: PartitionState) -> None:
        now = state.leader, state.leader_epoch, frozenset(state.in_sync)
        if self._last.get((topic, state.partition)) == now or self._written >= self._most:
            return
        self._events.write(
            "leader", topic=topic, partition=state.partition, leader=state.leader, epoch=state.leader_epoch,
            in_sync=sorted(state.in_sync), replicas=list(state.replicas),
        )  # fmt: skip
        self._last[topic, state.partition] = now
        self._written += 1
