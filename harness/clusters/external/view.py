"""The view of a user's cluster: the answers of its brokers, each asked by itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harness.clusters.base.view import LocalView, ask_all
from harness.clusters.external.node import ASK_LIMIT_S, CommandedNode
from harness.errors import ClusterError
from harness.kafka.protocol import raw_client


class ExistingView(LocalView):
    """Like the view of a local cluster, but asks brokers about the quorum, as clients cannot reach controllers."""

    def __init__(self, nodes: Sequence[CommandedNode], probe_topic: str, admin: AdminClient) -> None:
        brokers = [node for node in nodes if node.member.broker]
        self._brokers = brokers
        self._voters = [node.name for node in nodes if node.member.controller]
        self._names = {node.member.id: node.name for node in nodes}
        self._admin = admin
        self._round_trips = {node.name: partial(self._round_trip_ms, node, probe_topic) for node in brokers}

    def active_controller(self) -> str:
        if not self._voters:  # brokers report no quorum: the controller is the broker that they name
            return self._by_metadata()
        answers = ask_all(
            self._brokers, lambda broker: raw_client.describe_quorum(broker.control, ASK_LIMIT_S)
        )
        leading = [
            answer for answer in answers.values() if answer.error == 0 and answer.leader in self._names
        ]
        if not leading:
            raise ClusterError("no broker knows which controller leads the quorum")
        return self._names[max(leading, key=lambda answer: answer.leader_epoch).leader]

    def controllers(self) -> Sequence[str]:
        return self._voters or [broker.name for broker in self._brokers]

    def _by_metadata(self) -> str:
        try:
            described = self._admin.describe_cluster(request_timeout=ASK_LIMIT_S).result(ASK_LIMIT_S * 2)
        except (KafkaException, TimeoutError) as error:
            raise ClusterError(f"no broker reports the controller: {error}") from error
        if described.controller is None or described.controller.id not in self._names:
            raise ClusterError("no broker is the controller now")
        return self._names[described.controller.id]

    def _round_trip_ms(self, broker: CommandedNode, topic: str) -> float:
        """Measure an append to a partition that the broker leads; not every cluster lets clients place a partition on it."""
        led = [state.partition for state in self.partitions(topic) if state.leader == broker.name]
        if not led:
            raise ClusterError(f"{broker.name} leads no partition of {topic}")
        begun = time.monotonic()
        raw_client.produce(broker.control, topic, led[0], b"probe", timeout_s=ASK_LIMIT_S * 2)
        return (time.monotonic() - begun) * 1000
