"""Brokers of any make: requests that they do not offer, and settings that they refuse."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.cimpl import NewTopic

from faults.delete_records import DeleteRecords
from harness.clusters.external.preflight import Preflight
from harness.contracts import (
    ClusterDescription,
    Mode,
    TopicSettings,
)
from harness.errors import ClusterError
from harness.injector import why_not_applicable
from harness.kafka import optional_requests
from harness.kafka.optional_requests import fitted
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios import matrix
from tests.fake_arena import FakeCluster, make_arena

# TRUST T13

EVERYTHING = dict.fromkeys(range(100), (0, 99))


def test_unsupported_requests_are_reported_with_their_consequences() -> None:
    assert optional_requests.lacking([EVERYTHING, EVERYTHING]) == {}
    old = {key: span for key, span in EVERYTHING.items() if key not in (55, 61)}
    assert list(optional_requests.lacking([EVERYTHING, old])) == ["DescribeProducers", "DescribeQuorum"], (
        "one of them lacks it"
    )
    too_new = {**EVERYTHING, 61: (5, 9)}
    assert list(optional_requests.lacking([too_new])) == ["DescribeProducers"], (
        "no version of it is known here"
    )
    plain = {key: span for key, span in EVERYTHING.items() if key not in (24, 25, 26, 28)}
    (line,) = optional_requests.consequences(optional_requests.lacking([plain]))
    assert line == (
        "the brokers do not offer AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit: exactly-once cannot be run"
    )


class Poor(FakeCluster):
    def describe(self) -> ClusterDescription:
        return ClusterDescription(
            "existing", lacking=["EndTxn", "DeleteRecords", "DescribeShareGroupOffsets"]
        )


def test_scenarios_that_need_unsupported_requests_are_skipped_with_the_reason() -> None:
    there = make_arena().cluster
    cluster = Poor(there.brokers, there.replicas)
    exactly, at_least = (matrix.fault_free(mode) for mode in (Mode.EXACTLY_ONCE, Mode.AT_LEAST_ONCE))
    assert why_not_applicable(at_least, cluster) is None
    assert why_not_applicable(replace(at_least, workload="share_group"), cluster) == (
        f"{at_least.name}: share_group needs DescribeShareGroupOffsets, which the brokers do not offer"
    )
    assert (
        why_not_applicable(exactly, cluster)
        == "exactly_once-none: exactly_once needs EndTxn, which the brokers do not offer"
    )
    deleted = replace(at_least, name="d", schedule=once(DeleteRecords(), on=leader_of(0), hold_s=1.0))
    assert (
        why_not_applicable(deleted, cluster)
        == "d: delete_records needs DeleteRecords, which the brokers do not offer"
    )


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (9, 3, 2)])
def test_topics_have_no_more_replicas_than_there_are_brokers(
    brokers: int, replicas: int, in_sync: int
) -> None:
    made = fitted(TopicSettings(replication_factor=3, min_insync_replicas=2), brokers)
    assert (made.replication_factor, made.min_insync_replicas) == (replicas, in_sync)


def test_a_topic_is_created_without_a_setting_or_placement_that_brokers_refuse() -> None:
    """Not every broker has min.insync.replicas, or lets its clients place replicas."""
    asked: list[tuple[bool, bool]] = []

    class Picky:
        codes: ClassVar[list[int]] = [KafkaError.INVALID_REPLICA_ASSIGNMENT, KafkaError.INVALID_CONFIG]

        def create_topics(self, new: list[NewTopic], **_: object) -> dict[str, Future[None]]:
            (topic,) = new
            asked.append((bool(topic.replica_assignment), bool(topic.config)))
            future: Future[None] = Future()
            if self.codes:
                future.set_exception(KafkaException(KafkaError(self.codes.pop(0))))
            else:
                future.set_result(None)
            return {topic.topic: future}

    preflight = Preflight({}, Picky(), "onceproof-")  # type: ignore[arg-type]
    preflight.make_topic("onceproof-probe", [1, 2])
    assert asked == [(True, True), (False, True), (False, False)]
    assert preflight.refused == ["min.insync.replicas"]
    Picky.codes = [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(ClusterError, match="may not create topics under the prefix onceproof-"):
        preflight.make_topic("onceproof-probe", [1])
