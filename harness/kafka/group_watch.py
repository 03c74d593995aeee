"""The progress of a consumer group, seen from outside, on the control lane, which no fault touches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from harness.contracts import Cluster
from harness.errors import ClusterError
from harness.kafka import connection
from harness.kafka.topics import ASK_S, partitions_now
from harness.waiting import wait_until


class GroupWatch:
    """The committed offsets of a group and the ends of the partitions.

    `partitions` is their number at the start; partitions that are added later are watched too.
    """

    def __init__(self, cluster: Cluster, topic: str, partitions: int, group: str, isolation: str) -> None:
        self._cluster, self._topic, self._partitions = cluster, topic, partitions
        self._consumer = Consumer(
            connection.settings(
                cluster,
                group_id=group,  # never subscribes, so it is not a member
                isolation_level=isolation,
                enable_auto_commit=False,
            )
        )

    def lag(self) -> Mapping[int, int]:
        """Return the records (and markers) between committed offset and end, for partitions that are behind."""
        return self._lag()[0]

    def _lag(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return the lag, and the ends that it was computed with, by partition."""
        self._partitions = partitions_now(self._cluster, self._topic, self._partitions)
        places = [TopicPartition(self._topic, p) for p in range(self._partitions)]
        committed = self._committed(places)
        behind, ends = {}, {}
        for place in places:
            start, end = self._consumer.get_watermark_offsets(place, timeout=ASK_S)
            if (lag := end - max(committed.get(place.partition, -1), start)) > 0:
                behind[place.partition] = lag
            ends[place.partition] = end
        return behind, ends

    def _committed(self, places: list[TopicPartition]) -> Mapping[int, int]:
        """Return the committed offsets by partition. Some brokers do not know a group that has committed nothing."""
        try:
            return {t.partition: t.offset for t in self._consumer.committed(places, timeout=ASK_S)}
        except KafkaException as problem:
            if problem.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return {}
            raise

    def wait_until_drained(
        self, timeout_s: float, watch: Callable[[], None] = lambda: None
    ) -> Mapping[int, int]:
        """Wait until the group has committed the end of every partition; return these ends.

        The ends belong into the ledger: records that are appended later were not drained.
        """
        last: dict[str, object] = {}
        ends: dict[int, int] = {}

        def drained() -> bool:
            watch()
            try:
                last["lag"], found = self._lag()
                ends.update(found)
            except (KafkaException, ClusterError) as problem:
                last["lag"] = problem.args[0].str() if isinstance(problem, KafkaException) else str(problem)
            return not last["lag"]

        wait_until(drained, timeout_s, lambda: f"the group is behind by {last.get('lag')}", every_s=0.1)
        return ends

    def close(self) -> None:
        self._consumer.close()
