"""Observe, step by step, that a cluster is ready; never by a line in a log or after a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harness.clusters.base.broker import Broker
from harness.clusters.base.security import Access
from harness.clusters.base.server import Server
from harness.clusters.base.view import LocalView
from harness.errors import ClusterError, StartTimeout, WaitTimeout
from harness.kafka.protocol.security import RefusedError
from harness.kafka.topics import PROBE_TOPIC
from harness.waiting import wait_until

_CANARY = "onceproof-canary"


class Readiness:
    """Waits for one step after the other within one limit; `steps_s` contains the time of each."""

    def __init__(
        self,
        nodes: Sequence[Server],
        view: LocalView,
        bootstrap: str,
        limit_s: float,
        access: Access | None = None,
    ) -> None:
        self._nodes = nodes
        self._brokers = [node for node in nodes if isinstance(node, Broker)]
        self._view = view
        self._access = access
        settings = access.security.settings if access is not None else {}
        # Errors are raised; what the library logs while a cluster comes up is noise.
        self._client = {"bootstrap.servers": bootstrap, **settings, "log_level": 0}
        self._begun = time.monotonic()
        self._limit_s = limit_s
        self.steps_s: dict[str, float] = {}

    def wait(self) -> None:
        if (access := self._access) is not None:
            self._step("user_admitted", lambda: access.admit(self._brokers))
        if zookeepers := [node for node in self._nodes if node.member.zookeeper]:
            self._step("ensemble_serves", lambda: all(node.ready() for node in zookeepers))
        self._step("nodes_answer", lambda: all(node.ready() for node in self._nodes))
        self._step("controller_elected", lambda: bool(self._view.active_controller()))
        self._step("brokers_see_each_other", self._see_each_other)
        self._step("probe_topic", self._probe_topic)
        self._step("internal_topics", self._internal_topics)
        self._step("probe_appends", self._probe_appends)
        self._canary()

    def _step(self, name: str, condition: Callable[[], bool]) -> None:
        try:
            wait_until(lambda: self._all_run() and self._ask(condition), self._left_s(), name)
        except WaitTimeout as error:
            raise StartTimeout(
                f"the cluster did not come up within {self._limit_s:g} s: {self._trouble(name)}"
            ) from error
        self._done(name)

    def _done(self, name: str) -> None:
        self.steps_s[name] = round(time.monotonic() - self._begun, 2)

    def _left_s(self) -> float:
        return max(0.0, self._limit_s - (time.monotonic() - self._begun))

    def _trouble(self, step: str) -> str:
        late = next((node for node in self._nodes if not _is_ready(node)), self._nodes[0])
        return f"step {step}: {late.name}: {late.complaint()}"

    def _all_run(self) -> bool:
        """Raise at once if a node has ended: there is nothing to wait for then."""
        for node in self._nodes:
            node.must_run()
        return True

    def _ask(self, condition: Callable[[], bool]) -> bool:
        try:
            return condition()
        except RefusedError:
            raise
        except ClusterError:  # no answer yet
            return False

    def _see_each_other(self) -> bool:
        expected = {broker.member.id for broker in self._brokers}
        return all(broker.metadata().brokers == expected for broker in self._brokers)

    def _probe_topic(self) -> bool:
        """Create a topic with one partition on each broker, so that the append of a single broker can be measured."""
        admin = AdminClient({**self._client, "socket.timeout.ms": 5000})
        places = [[broker.member.id] for broker in self._brokers]
        # Records get the broker's own time, so that an append shows its clock.
        config = {"min.insync.replicas": "1", "message.timestamp.type": "LogAppendTime"}
        topic = NewTopic(PROBE_TOPIC, len(places), replica_assignment=places, config=config)
        try:
            admin.create_topics([topic], request_timeout=10)[PROBE_TOPIC].result(15)
        except KafkaException as error:
            return bool(error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
        return True

    def _internal_topics(self) -> bool:
        """Request both internal topics: the first request creates them, which saves the canary slow retries."""
        first = self._brokers[0]
        found = [first.has_coordinator(_CANARY, transaction=kind) for kind in (True, False)]
        return all(found)

    def _probe_appends(self) -> bool:
        return all(broker.produce_round_trip_ms() > 0 for broker in self._brokers)

    def _canary(self) -> None:
        """Commit a transaction with offsets, which needs both internal topics and both coordinators."""
        producer = Producer(
            {
                **self._client,
                "transactional.id": _CANARY,
                "transaction.timeout.ms": 60000,
                "socket.timeout.ms": 5000,
                "retry.backoff.ms": 50,
            }
        )
        member = Consumer({**self._client, "group.id": _CANARY})
        try:
            producer.init_transactions(self._left_s())
            self._done("transactions_initialised")
            producer.begin_transaction()
            producer.produce(PROBE_TOPIC, b"canary", partition=0)
            positions = [TopicPartition(PROBE_TOPIC, 0, 0)]
            group = member.consumer_group_metadata()
            producer.send_offsets_to_transaction(positions, group, self._left_s())
            producer.commit_transaction(self._left_s())
        except KafkaException as error:
            self._all_run()
            kind = StartTimeout if error.args[0].code() == KafkaError._TIMED_OUT else ClusterError
            raise kind(f"the canary transaction failed: {error}; {self._trouble('canary')}") from error
        finally:
            member.close()
        self._done("canary_committed")


def _is_ready(node: Server) -> bool:
    try:
        return node.ready()
    except RefusedError:
        return False
