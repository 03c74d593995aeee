"""Operator actions on a topic by the admin API, on the control lane, which no fault touches.

Nodes are given by name. Each call returns when the cluster has accepted it; work that goes on after that, such as
copying a replica, is waited for separately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its types leave them out
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    ResourceType,
)

from harness.contracts import Cluster, PartitionState
from harness.errors import ClusterError, WaitTimeout
from harness.kafka import connection
from harness.kafka.protocol import admin_requests, raw_client
from harness.kafka.protocol.producers import OpenTransaction, open_transactions
from harness.waiting import wait_until

T = TypeVar("T")
ASK_S = 10.0
MOVE_LIMIT_S = 60.0
_ASK_EVERY_S = 0.1


class Administrator:
    """The admin calls that several faults share, for one topic."""

    def __init__(self, cluster: Cluster, topic: str, move_limit_s: float = MOVE_LIMIT_S) -> None:
        self._cluster, self._topic = cluster, connection.ours(cluster, topic)
        self._move_limit_s = move_limit_s
        self._client = AdminClient(connection.settings(cluster, socket_timeout_ms=5000))

    # --- replicas and leaders ---

    def place(self, replicas: Mapping[int, Sequence[str]]) -> None:
        """Give partitions these replicas in this order; return when they have them and the new ones are in sync."""
        before = {state.partition: set(state.replicas) for state in self.states()}
        self._reassign(replicas)

        def placed(state: PartitionState) -> bool:
            wanted = replicas[state.partition]
            added = set(wanted) - before.get(state.partition, set())
            return state.replicas == tuple(wanted) and added <= set(state.in_sync)

        self._wait(replicas, placed, "has other replicas than it was given")

    def lead(self, leaders: Mapping[int, str]) -> None:
        """Make these brokers lead, which have to be the preferred leaders; return when they do."""

        def leads(state: PartitionState) -> bool:
            if state.leader == leaders[state.partition]:
                return True
            self.elect([state.partition])  # again: a replica that is not in sync yet is refused
            return False

        self._wait(leaders, leads, "has another leader than the one elected")

    def restore(self, states: Sequence[PartitionState]) -> None:
        """Restore these replicas, in their order, with these leaders. Does nothing if they are unchanged."""
        led = {state.partition: state.leader for state in states if state.leader is not None}
        self.place({state.partition: first(state.leader, state.replicas) for state in states})
        self.lead(led)
        self.place({state.partition: state.replicas for state in states})

    def elect(self, partitions: Sequence[int], *, unclean: bool = False) -> dict[int, str]:
        """Elect the preferred leaders, or with `unclean` any live replica; return the refusals by partition."""
        return self._of_any(lambda at: admin_requests.elect(at, self._topic, partitions, unclean, ASK_S))

    def states(self) -> Sequence[PartitionState]:
        return self._cluster.view().partitions(self._topic)

    def end_of_epoch(self, partition: int, epoch: int, leader: str) -> int:
        """Return the end of the leader's log when an epoch ended."""
        at = self._control(leader)
        return _again(lambda: admin_requests.end_of_epoch(at, self._topic, partition, epoch, ASK_S))

    def _reassign(self, replicas: Mapping[int, Sequence[str]]) -> None:
        ids = {name: broker.id for name, broker in self._cluster.view().broker_places().items()}
        wanted = {partition: [ids[name] for name in names] for partition, names in replicas.items()}
        refused = self._of_any(lambda at: admin_requests.reassign(at, self._topic, wanted, ASK_S))
        if refused:
            raise ClusterError(f"replicas of {self._topic} cannot be moved: {refused}")

    def _of_any(self, question: Callable[[raw_client.Address], T]) -> T:
        """Return the answer of the first broker that gives one: a broker passes the request on to the controller.

        With ZooKeeper only the active controller, itself a broker, can answer, so it is asked first.
        """
        problem = ClusterError("no broker is registered")
        view = self._cluster.view()
        try:
            active = view.active_controller()
        except ClusterError:
            active = ""
        for name in sorted(view.registered_brokers(), key=lambda name: name != active):
            try:
                return question(self._control(name))
            except raw_client.UnsupportedError:
                raise
            except raw_client.WireError as error:
                problem = error
        raise ClusterError(f"{self._topic}: no broker could pass the request on: {problem}") from problem

    def _control(self, broker: str) -> raw_client.Address:
        return self._cluster.view().broker_places()[broker].control

    def _wait(
        self, partitions: Mapping[int, Any], condition: Callable[[PartitionState], bool], complaint: str
    ) -> None:
        last: dict[str, PartitionState] = {}

        def settled() -> bool:
            try:
                states = [state for state in self.states() if state.partition in partitions]
            except ClusterError:  # no broker answers at the moment
                return False
            unsettled = [state for state in states if not condition(state)]
            last.update({"state": unsettled[0]} if unsettled else {})
            return len(states) == len(partitions) and not unsettled

        try:
            wait_until(settled, self._move_limit_s, "", every_s=_ASK_EVERY_S)
        except WaitTimeout:
            raise ClusterError(
                f"after {self._move_limit_s:g} s {last.get('state', self._topic)} {complaint}"
            ) from None

    # --- partitions, records, settings ---

    def grow(self, partitions: int) -> None:
        """Add partitions until the topic has so many."""
        more = NewPartitions(self._topic, partitions)
        self._answer(self._client.create_partitions([more], request_timeout=ASK_S)[self._topic])

    def offsets(self) -> dict[int, tuple[int, int]]:
        """Return log start and end of each partition, as its leader reports; the end is what consumers can read."""
        return _again(self._offsets)

    def open_transactions(self) -> list[OpenTransaction]:
        """Return the transactions that are open in partitions of the topic, as the leaders report."""
        return _again(
            lambda: [
                one
                for leader, partitions in self._led().items()
                for one in open_transactions(self._control(leader), self._topic, partitions, ASK_S)
            ]
        )

    def _led(self) -> dict[str, list[int]]:
        """Return the partitions of each leader."""
        led: dict[str, list[int]] = {}
        for state in self.states():
            if state.leader is None:
                raise ClusterError(f"{self._topic}-{state.partition} has no leader that could be asked")
            led.setdefault(state.leader, []).append(state.partition)
        return led

    def _offsets(self) -> dict[int, tuple[int, int]]:
        bounds: dict[int, tuple[int, int]] = {}
        for leader, partitions in self._led().items():
            starts, ends = (
                admin_requests.offsets(self._control(leader), self._topic, partitions, which, ASK_S)
                for which in (admin_requests.EARLIEST, admin_requests.LATEST)
            )
            bounds |= {partition: (starts[partition], ends[partition]) for partition in partitions}
        return bounds

    def committed(self, group: str) -> dict[int, int]:
        """Return the committed offsets of the group, by partition."""
        asked = [ConsumerGroupTopicPartitions(group)]
        answer = self._client.list_consumer_group_offsets(asked, request_timeout=ASK_S)[group]
        if _code_of(answer) == KafkaError.GROUP_ID_NOT_FOUND:
            return {}  # the answer of some brokers for a group that has committed nothing
        found = self._answer(answer)
        return {
            place.partition: place.offset
            for place in found.topic_partitions
            if place.topic == self._topic and place.offset >= 0
        }

    def delete_group(self, group: str) -> None:
        """Delete the group with its committed offsets. Raises ClusterError while it has members."""
        self._answer(self._client.delete_consumer_groups([group], request_timeout=ASK_S)[group])

    def delete_records(self, below: Mapping[int, int]) -> None:
        """Delete the records below these offsets, for good."""
        asked = [TopicPartition(self._topic, partition, offset) for partition, offset in below.items()]
        for future in self._client.delete_records(asked, request_timeout=ASK_S).values():
            self._answer(future)

    def overrides(self) -> dict[str, str]:
        """Return the settings that the topic overrides."""
        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        found = self._answer(self._client.describe_configs([resource], request_timeout=ASK_S)[resource])
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: entry.value for name, entry in found.items() if entry.source == own}

    def override(self, settings: Mapping[str, str | None]) -> None:
        """Override settings of the topic; None removes an override."""
        entries = [
            ConfigEntry(
                name,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, self._topic, incremental_configs=entries)
        self._answer(self._client.incremental_alter_configs([resource], request_timeout=ASK_S)[resource])

    def _answer(self, future: Future[T]) -> T:
        try:
            return future.result(ASK_S * 2)
        except KafkaException as problem:
            raise ClusterError(f"{self._topic}: the cluster refused: {problem.args[0].str()}") from problem
        except TimeoutError:
            raise ClusterError(f"{self._topic}: no answer within {ASK_S * 2:g} s") from None


def _code_of(future: Future[Any]) -> int:
    try:
        problem = future.exception(ASK_S * 2)
    except TimeoutError:
        return 0
    return int(problem.args[0].code()) if isinstance(problem, KafkaException) else 0


def _again(question: Callable[[], T]) -> T:
    """Ask until there is an answer: a new leader reports errors for a moment."""
    answers: list[T] = []
    problem = ClusterError("no broker was asked")

    def answered() -> bool:
        nonlocal problem
        try:
            answers.append(question())
        except raw_client.UnsupportedError:
            raise  # asking again changes nothing
        except ClusterError as error:
            problem = error
        return bool(answers)

    try:
        wait_until(answered, ASK_S, "", every_s=_ASK_EVERY_S)
    except WaitTimeout:
        raise problem from None
    return answers[0]


def first(leader: str | None, replicas: Sequence[str]) -> tuple[str, ...]:
    """Return the replicas with the leader in front: the order in which Kafka prefers them."""
    front = [leader] if leader is not None else []
    return (*front, *(name for name in replicas if name != leader))
