"""Topics and groups of a run, on the control lane, which no fault touches."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from harness.contracts import Cluster, Lane
from harness.errors import ClusterError
from harness.scenario import TopicSettings
from harness.waiting import wait_until

ASK_S = 10.0


class Topics:
    """Creates, watches and deletes the topic of a run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._bootstrap = cluster.bootstrap_servers(Lane.CONTROL)
        self._admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 3})

    def create(self, name: str, settings: TopicSettings) -> None:
        """Create a topic; returns when every partition has a leader and its in-sync set is full."""
        new = NewTopic(
            name,
            num_partitions=settings.partitions,
            replication_factor=settings.replication_factor,
            config={
                "min.insync.replicas": str(settings.min_insync_replicas),
                **{k: str(v) for k, v in settings.extra.items()},
            },
        )
        try:
            self._admin.create_topics([new], request_timeout=ASK_S)[name].result(ASK_S * 2)
        except KafkaException as problem:
            raise ClusterError(f"topic {name} cannot be created: {problem.args[0].str()}") from problem
        wait_until(
            lambda: self.full(name, settings.partitions),
            30.0,
            lambda: f"topic {name} has no full in-sync sets: {self._cluster.view().partitions(name)}",
            every_s=0.1,
        )

    def full(self, name: str, partitions: int) -> bool:
        states = self._cluster.view().partitions(name)
        return len(states) == partitions and all(
            s.leader is not None and set(s.in_sync) == set(s.replicas) for s in states
        )

    def delete(self, name: str) -> None:
        try:
            self._admin.delete_topics([name], request_timeout=ASK_S)[name].result(ASK_S * 2)
        except KafkaException as problem:
            raise ClusterError(f"topic {name} cannot be deleted: {problem.args[0].str()}") from problem


class GroupWatch:
    """How far a group is, seen from outside: its committed offsets and the ends of the partitions."""

    def __init__(self, cluster: Cluster, topic: str, partitions: int, group: str, isolation: str) -> None:
        self._partitions = [TopicPartition(topic, p) for p in range(partitions)]
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers(Lane.CONTROL),
                "group.id": group,  # never subscribes, so it is no member
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "log_level": 3,
            }
        )

    def lag(self) -> Mapping[int, int]:
        """Records (and markers) between the committed offset and the end, for partitions that are behind."""
        committed = {t.partition: t.offset for t in self._consumer.committed(self._partitions, timeout=ASK_S)}
        behind = {}
        for place in self._partitions:
            start, end = self._consumer.get_watermark_offsets(place, timeout=ASK_S)
            lag = end - max(committed.get(place.partition, -1), start)
            if lag > 0:
                behind[place.partition] = lag
        return behind

    def wait_until_drained(self, timeout_s: float, watch: object = None) -> None:
        """Wait until the group has committed the end of every partition."""
        last: dict[str, object] = {}

        def drained() -> bool:
            if callable(watch):
                watch()
            try:
                last["lag"] = dict(self.lag())
            except KafkaException as problem:
                last["lag"] = problem.args[0].str()
            return not last["lag"]

        wait_until(drained, timeout_s, lambda: f"the group is behind by {last.get('lag')}", every_s=0.1)

    def close(self) -> None:
        self._consumer.close()
