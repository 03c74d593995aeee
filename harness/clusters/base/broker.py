"""A server that is a broker, as a process or in a container: the requests that it answers by itself, and probes of it alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harness.clusters.base.server import ASK_LIMIT_S, Server
from harness.errors import ClusterError
from harness.kafka.protocol import raw_client
from harness.kafka.topics import PROBE_TOPIC
from harness.waiting import wait_until

PROBE_LIMIT_S = 10.0
_TOPIC_LIMIT_S = 20.0


class Broker(Server):
    """A broker, possibly combined with a controller."""

    def produce_round_trip_ms(self) -> float:
        """Measure how long this broker takes to acknowledge one small record in its own probe partition."""
        return took_ms(lambda: self.append(PROBE_TOPIC, self.probe_partition))

    def has_coordinator(self, key: str, *, transaction: bool) -> bool:
        return (
            raw_client.coordinator_error(self.control, key, transaction=transaction, timeout_s=ASK_LIMIT_S)
            == 0
        )

    def metadata(self, *topics: str) -> raw_client.Metadata:
        return raw_client.metadata(self.control, topics, ASK_LIMIT_S)

    def _takes_part(self) -> bool:
        # A broker answers only after it has caught up with its new registration, so when it lists itself,
        # it does not list its registration from before the restart.
        return self.member.id in self.metadata().brokers

    # Probes: topics that only this broker has.

    @property
    def probe_partition(self) -> int:
        """The partition of the probe topic that only this broker has."""
        return self.member.id - 1

    def append(self, topic: str, partition: int) -> None:
        raw_client.produce(self.control, topic, partition, b"probe", timeout_s=PROBE_LIMIT_S)

    @cached_property
    def flushed_topic(self) -> str:
        """Return a topic on this broker alone whose every append waits for an fsync."""
        name = f"{PROBE_TOPIC}-flushed-{self.member.id}"
        self.make_topic(name, {"flush.messages": "1"})
        return name

    def make_topic(self, name: str, config: Mapping[str, str] = {}) -> None:
        """Create a topic with one partition, on this broker alone; return when it accepts records."""
        all_config = {"min.insync.replicas": "1", **config}
        topic = NewTopic(name, 1, replica_assignment=[[self.member.id]], config=all_config)
        admin = self.own_admin()
        try:
            admin.create_topics([topic], request_timeout=_TOPIC_LIMIT_S)[name].result(_TOPIC_LIMIT_S * 2)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise ClusterError(f"{name} cannot be created: {error.args[0].str()}") from error
        self.wait_takes(name)

    def own_admin(self) -> AdminClient:
        access = self.security.settings if self.security is not None else {}
        place: dict[str, Any] = {"bootstrap.servers": "{}:{:d}".format(*self.control), "log_level": 0}
        return AdminClient({**place, **access})

    def wait_takes(self, topic: str, partition: int = 0) -> None:
        wait_until(
            lambda: self._takes(topic, partition),
            _TOPIC_LIMIT_S,
            f"{self.name} does not serve {topic}-{partition}",
        )

    def _takes(self, topic: str, partition: int) -> bool:
        try:
            self.append(topic, partition)
        except raw_client.WireError:  # the broker has not opened the log yet
            return False
        return True


def took_ms(act: Callable[[], object]) -> float:
    begun = time.monotonic()
    act()
    return (time.monotonic() - begun) * 1000
