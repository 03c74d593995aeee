"""Whether a cluster that is not ours can be used: each right that a run needs, tried once, and named if it is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harness.errors import ClusterError

T = TypeVar("T")
_LIMIT_S = 30.0
_ASK_S = 10.0
_REFUSALS = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


class Preflight:
    """`make` and `delete` are the cluster's own: what they make is written down. Topics begin with `prefix`."""

    def __init__(self, settings: Mapping[str, Any], admin: AdminClient, prefix: str) -> None:
        self._settings, self._admin, self._prefix = settings, admin, prefix

    def make_topic(self, name: str, brokers: Sequence[int]) -> None:
        """One partition on each broker, so that one broker's append can be measured by itself."""
        config = {"min.insync.replicas": "1", "message.timestamp.type": "LogAppendTime"}
        topic = NewTopic(
            name, len(brokers), replica_assignment=[[broker] for broker in brokers], config=config
        )
        made = self._admin.create_topics([topic], request_timeout=_ASK_S)[name]
        self._may("create topics", lambda: made.result(_ASK_S * 2))

    def use(self, topic: str) -> None:
        """Write in a transaction, commit offsets in it, read."""
        refused: list[KafkaError] = []
        producer = Producer(
            {
                **self._settings,
                "transactional.id": f"{topic}-transactions",
                "transaction.timeout.ms": 30000,
                "retry.backoff.ms": 50,
            }
        )
        reader = Consumer({**self._settings, "group.id": f"{topic}-group", "enable.auto.commit": False})
        try:
            self._may("use transactional ids", lambda: producer.init_transactions(_LIMIT_S))
            producer.begin_transaction()

            def told(error: KafkaError | None, _record: object) -> None:
                refused.extend([error] if error is not None else [])

            producer.produce(topic, b"probe", partition=0, on_delivery=told)
            producer.flush(_LIMIT_S)
            if refused:  # the commit tells why; the record itself only that it was given up
                self._may("write", lambda: producer.commit_transaction(_LIMIT_S))
            group, place = reader.consumer_group_metadata(), [TopicPartition(topic, 0, 1)]
            self._may(
                "commit as a group",
                lambda: producer.send_offsets_to_transaction(place, group, _LIMIT_S),
            )
            self._may("commit transactions", lambda: producer.commit_transaction(_LIMIT_S))
            reader.assign([TopicPartition(topic, 0, 0)])
            self._may("read", lambda: _read(reader))
        finally:
            reader.close()

    def delete_topic(self, name: str) -> None:
        gone = self._admin.delete_topics([name], request_timeout=_ASK_S)[name]
        self._may("delete topics", lambda: gone.result(_ASK_S * 2))

    def _may(self, what: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except KafkaException as problem:
            error = problem.args[0]
            if error.code() in _REFUSALS:
                raise ClusterError(
                    f"the user of --client-config may not {what} under the prefix {self._prefix}: {error.str()}"
                ) from problem
            raise ClusterError(
                f"the try to {what} under the prefix {self._prefix} failed: {error.str()}"
            ) from problem
        except TimeoutError:
            raise ClusterError(
                f"the try to {what} under the prefix {self._prefix} had no answer within {_ASK_S * 2:g} s"
            ) from None


def _read(reader: Consumer) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline:
        record = reader.poll(0.2)
        if record is not None:
            error = record.error()
            if error is not None:
                raise KafkaException(error)
            return
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "a record that was written cannot be read"))
