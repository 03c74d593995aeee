"""Topics of a run, on the control lane, which no fault touches."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its types leave some out
    AdminClient,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from harness.contracts import Cluster, PartitionState, TopicSettings, compacts
from harness.errors import ClusterError, RunRefusedError
from harness.kafka import connection
from harness.kafka.protocol import admin_requests
from harness.waiting import wait_until

ASK_S = 10.0
CHANGE_LIMIT_S = 60.0
_LATE = {KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT}
_Ask = Callable[[], Future[Any]]
PROBE_TOPIC = "onceproof-probe"
PROBE_PREFIX = PROBE_TOPIC  # of all topics for probes


def create_topic(cluster: Cluster, name: str, settings: TopicSettings, without: Collection[str] = ()) -> None:
    """Create a topic on a real cluster; return when every leader serves its partition and all replicas are in sync.

    `without`: settings that these brokers do not have.
    """
    config = {"min.insync.replicas": settings.min_insync_replicas, **settings.extra}
    new = NewTopic(
        connection.ours(cluster, name),
        num_partitions=settings.partitions,
        replication_factor=settings.replication_factor,
        config={k: str(v) for k, v in config.items() if k not in without},
    )
    admin = _admin(cluster)  # kept in a variable: its requests end with it
    _change(
        lambda: admin.create_topics([new], request_timeout=ASK_S)[name],
        done=KafkaError.TOPIC_ALREADY_EXISTS, otherwise=f"topic {name} cannot be created",
    )  # fmt: skip
    wait_until(
        lambda: _full(cluster, name, settings.partitions),
        30.0,
        lambda: f"topic {name} has no full in-sync sets: {cluster.view().partitions(name)}",
        every_s=0.1,
    )
    # In-sync sets are full before the leaders have opened their logs, and acks=0 would lose the first records.
    # A leader that reports the end of its log has opened it.
    last: dict[str, ClusterError] = {}
    wait_until(
        lambda: _served(cluster, name, settings.partitions, last),
        30.0,
        lambda: f"the leaders of topic {name} do not serve it: {last.get('problem', 'no leader')}",
        every_s=0.1,
    )


def can_create(cluster: Cluster, limit_s: float) -> bool:
    """Return True if the cluster would create a topic; none is created."""
    name = f"{PROBE_PREFIX}-creation"
    admin = _admin(cluster)
    asked = admin.create_topics([NewTopic(name, 1, 1)], request_timeout=limit_s, validate_only=True)[name]
    try:
        asked.result(limit_s * 2)
    except (KafkaException, TimeoutError):
        return False
    return True


def delete_topic(cluster: Cluster, name: str) -> None:
    admin, known = _admin(cluster), connection.ours(cluster, name)
    # Asked before: the client itself asks again if an answer is late.
    _change(
        lambda: admin.delete_topics([known], request_timeout=ASK_S)[name],
        done=KafkaError.UNKNOWN_TOPIC_OR_PART, asked_before=True, otherwise=f"topic {name} cannot be deleted",
    )  # fmt: skip


def _change(
    ask: _Ask,
    *,
    done: int,
    otherwise: str,
    asked_before: bool = False,
    limit_s: float = CHANGE_LIMIT_S,
    answer_s: float = ASK_S * 2,
) -> None:
    """Ask until there is an answer: a busy controller may answer late although it has made the change.

    `done`: the error of a second request after the change was made. `answer_s`: the limit of one request.
    """
    deadline = time.monotonic() + limit_s
    while True:
        try:
            ask().result(answer_s)
            return
        except KafkaException as problem:
            error = problem.args[0]
            if asked_before and error.code() == done:
                return
            if error.code() not in _LATE or time.monotonic() > deadline:
                raise ClusterError(f"{otherwise}: {error.str()}") from problem
        except TimeoutError as problem:  # a stalled machine: the client itself has not given up yet
            if time.monotonic() > deadline:
                raise ClusterError(f"{otherwise}: no answer within {limit_s:g} s") from problem
        asked_before = True


def refuse_compaction(cluster: Cluster, topics: Iterable[str]) -> list[str]:
    """Raise RunRefusedError if one of these topics is compacted, by its own setting or by the brokers' default.

    Returns a line for each topic whose policy the brokers do not report.
    """
    unknown = []
    for topic in topics:
        try:
            policy = _cleanup_policy(cluster, topic)
        except ClusterError as error:
            unknown.append(f"whether {topic} is compacted is not checked: {error}")
            continue
        if compacts(policy):
            raise RunRefusedError(
                f"topic {topic}: its effective cleanup.policy is {policy}, and compacted topics delete acked records by design; "
                "set log.cleanup.policy=delete on the brokers, or cleanup.policy=delete in TopicSettings.extra"
            )
    return unknown


def _cleanup_policy(cluster: Cluster, topic: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = _admin(cluster)
    try:
        found = admin.describe_configs([resource], request_timeout=ASK_S)[resource].result(ASK_S * 2)
        return str(found["cleanup.policy"].value)
    except KafkaException as problem:
        raise ClusterError(f"the brokers do not answer DescribeConfigs: {problem.args[0].str()}") from problem
    except TimeoutError:
        raise ClusterError(f"the brokers did not answer DescribeConfigs within {ASK_S * 2:g} s") from None
    except KeyError:
        raise ClusterError("the brokers' answer to DescribeConfigs has no cleanup.policy") from None


def partitions_now(cluster: Cluster, topic: str, at_least: int) -> int:
    """Return the current number of partitions of the topic: operators may add some, and their number never shrinks."""
    return max(at_least, len(cluster.view().partitions(topic)))


def _admin(cluster: Cluster) -> AdminClient:
    return AdminClient(connection.settings(cluster))


def _full(cluster: Cluster, name: str, partitions: int) -> bool:
    states = cluster.view().partitions(name)
    whole = [s for s in states if s.leader is not None and set(s.in_sync) == set(s.replicas)]
    return len(states) == len(whole) == partitions


def _served(cluster: Cluster, name: str, partitions: int, last: dict[str, ClusterError]) -> bool:
    """Return True if each leader reports the end of its logs; `last` gets the reason if not."""
    try:
        view = cluster.view()
        places, led = view.broker_places(), leaders(view.partitions(name))
        ends = [
            admin_requests.offsets(places[leader].control, name, numbers, admin_requests.LATEST, ASK_S)
            for leader, numbers in led.items()
        ]
    except ClusterError as problem:
        last["problem"] = problem
        return False
    return sum(len(each) for each in ends) == partitions


def leaders(states: Sequence[PartitionState]) -> dict[str, list[int]]:
    """Return the partitions of each leader, without partitions that have none."""
    led: dict[str, list[int]] = {}
    for state in states:
        if state.leader is not None:
            led.setdefault(state.leader, []).append(state.partition)
    return led
