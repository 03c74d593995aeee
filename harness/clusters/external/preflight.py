"""Check that a user's cluster can be used: try once each permission that a run needs, and name a missing one."""

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
# Error codes for a setting that the broker does not have, and for replicas that clients may not place.
_NOT_LIKE_THIS = (
    KafkaError.INVALID_CONFIG,
    KafkaError.INVALID_REQUEST,
    KafkaError.INVALID_REPLICA_ASSIGNMENT,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError.POLICY_VIOLATION,
)
_IN_SYNC = "min.insync.replicas"


class Preflight:
    """Tries the permissions of a client. `make` and `delete` are the cluster's methods, which record topics first."""

    def __init__(self, settings: Mapping[str, Any], admin: AdminClient, prefix: str) -> None:
        self._settings, self._admin, self._prefix = settings, admin, prefix
        self.refused: list[str] = []  # settings of topics that the brokers do not have

    def make_topic(self, name: str, brokers: Sequence[int]) -> None:
        """Create a topic with one partition on each broker, so that the append of a single broker can be measured.

        A broker may refuse an unknown setting, or replicas placed by clients: then the request is repeated without.
        """
        config = {} if self.refused else {_IN_SYNC: "1"}
        placed = NewTopic(
            name, len(brokers), replica_assignment=[[broker] for broker in brokers], config=config
        )
        anywhere = NewTopic(name, len(brokers), 1, config=config)
        plain = NewTopic(name, len(brokers), 1)
        problem: KafkaException | None = None
        for topic in (placed, anywhere, plain):
            try:
                self._admin.create_topics([topic], request_timeout=_ASK_S)[name].result(_ASK_S * 2)
            except KafkaException as error:
                problem = problem or error
                if error.args[0].code() not in _NOT_LIKE_THIS:
                    break
            except TimeoutError:
                raise self._unanswered("create topics") from None
            else:
                if topic is plain and config:
                    self.refused.append(_IN_SYNC)
                return
        assert problem is not None
        raise self._refusal("create topics", problem) from problem

    def use(self, topic: str, *, transactions: bool = True) -> None:
        """Write and commit offsets as a group, with `transactions` both in a transaction, then read."""
        reader = Consumer({**self._settings, "group.id": f"{topic}-group", "enable.auto.commit": False})
        try:
            write = self._write_in_transaction if transactions else self._write
            write(topic, reader)
            reader.assign([TopicPartition(topic, 0, 0)])
            self._may("read", lambda: _read(reader))
        finally:
            reader.close()

    def _write_in_transaction(self, topic: str, reader: Consumer) -> None:
        refused: list[KafkaError] = []
        producer = Producer(
            {
                **self._settings,
                "transactional.id": f"{topic}-transactions",
                "transaction.timeout.ms": 30000,
                "retry.backoff.ms": 50,
            }
        )
        self._may("use transactional ids", lambda: producer.init_transactions(_LIMIT_S))
        producer.begin_transaction()
        producer.produce(topic, b"probe", partition=0, on_delivery=_noted(refused))
        producer.flush(_LIMIT_S)
        if refused:  # the commit reports the cause; the record only that it was given up
            self._may("write", lambda: producer.commit_transaction(_LIMIT_S))
        group, place = reader.consumer_group_metadata(), [TopicPartition(topic, 0, 1)]
        self._may(
            "commit as a group",
            lambda: producer.send_offsets_to_transaction(place, group, _LIMIT_S),
        )
        self._may("commit transactions", lambda: producer.commit_transaction(_LIMIT_S))

    def _write(self, topic: str, reader: Consumer) -> None:
        refused: list[KafkaError] = []
        producer = Producer({**self._settings, "acks": "all", "message.timeout.ms": int(_LIMIT_S * 1000)})
        producer.produce(topic, b"probe", partition=0, on_delivery=_noted(refused))
        producer.flush(_LIMIT_S)
        if refused:
            raise self._refusal("write", KafkaException(refused[0]))
        place = [TopicPartition(topic, 0, 1)]
        self._may("commit as a group", lambda: reader.commit(offsets=place, asynchronous=False))

    def delete_topic(self, name: str) -> None:
        gone = self._admin.delete_topics([name], request_timeout=_ASK_S)[name]
        self._may("delete topics", lambda: gone.result(_ASK_S * 2))

    def _may(self, what: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except KafkaException as problem:
            raise self._refusal(what, problem) from problem
        except TimeoutError:
            raise self._unanswered(what) from None

    def _refusal(self, what: str, problem: KafkaException) -> ClusterError:
        error = problem.args[0]
        if error.code() in _REFUSALS:
            return ClusterError(
                f"the user of --client-config may not {what} under the prefix {self._prefix}: {error.str()}"
            )
        return ClusterError(f"the attempt to {what} under the prefix {self._prefix} failed: {error.str()}")

    def _unanswered(self, what: str) -> ClusterError:
        return ClusterError(
            f"the attempt to {what} under the prefix {self._prefix} had no answer within {_ASK_S * 2:g} s"
        )


def _noted(refused: list[KafkaError]) -> Callable[[KafkaError | None, object], None]:
    return lambda error, _record: refused.extend([error] if error is not None else [])


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
