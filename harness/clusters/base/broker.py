"""A server that is a broker, as a process or in a container: the requests that it answers by itself."""

from __future__ import annotations

from abc import abstractmethod

from harness.clusters.base.server import ASK_LIMIT_S, Server
from harness.kafka.protocol import raw_client


class Broker(Server):
    """A broker, possibly combined with a controller."""

    @abstractmethod
    def produce_round_trip_ms(self) -> float:
        """Measure how long this broker takes to acknowledge one small record in its own probe partition."""

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
