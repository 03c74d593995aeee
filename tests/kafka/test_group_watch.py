"""The watch of a consumer group: its lag, and the wait until it has committed everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from harness.errors import ClusterError, WaitTimeout
from harness.kafka import group_watch
from harness.kafka.group_watch import GroupWatch
from tests.fake_arena import FakeArena, make_arena


class FakeConsumer:
    """A consumer: every partition ends at 10; the group has committed `committed`."""

    committed_offsets: Mapping[int, int] = {}

    def __init__(self, settings: Mapping[str, Any]) -> None:
        pass

    def committed(self, places: Sequence[TopicPartition], timeout: float) -> list[TopicPartition]:
        known = self.committed_offsets
        return [TopicPartition(p.topic, p.partition, known.get(p.partition, -1001)) for p in places]

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        return 0, 10

    def close(self) -> None:
        pass


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> tuple[FakeArena, GroupWatch]:
    arena = make_arena()
    monkeypatch.setattr(group_watch, "Consumer", FakeConsumer)
    monkeypatch.setattr(FakeConsumer, "committed_offsets", {0: 10, 1: 10})
    return arena, GroupWatch(arena.cluster, arena.topic, 2, arena.group, "read_committed")


def test_a_drain_waits_for_partitions_that_were_added(
    watched: tuple[FakeArena, GroupWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena, watch = watched
    assert watch.lag() == {}
    arena.cluster.replicas = {**arena.cluster.replicas, 2: ("broker-1",)}
    assert watch.lag() == {2: 10}
    with pytest.raises(WaitTimeout, match=r"behind by \{2: 10\}"):
        watch.wait_until_drained(0.1)
    monkeypatch.setattr(FakeConsumer, "committed_offsets", {0: 10, 1: 10, 2: 10})
    # TRUST T7: the ends that it reached; the log may grow later.
    assert watch.wait_until_drained(0.1) == {0: 10, 1: 10, 2: 10}


def test_a_drain_goes_on_while_no_broker_answers(watched: tuple[FakeArena, GroupWatch]) -> None:
    arena, watch = watched
    arena.cluster.dumb = True
    with pytest.raises(WaitTimeout, match="no broker answers"):
        watch.wait_until_drained(0.1)
    with pytest.raises(ClusterError):
        watch.lag()


def test_a_group_that_the_brokers_do_not_know_has_committed_nothing(
    watched: tuple[FakeArena, GroupWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRUST T13: GROUP_ID_NOT_FOUND is a legal answer about a group that has committed nothing."""
    _arena, watch = watched
    code = KafkaError.GROUP_ID_NOT_FOUND

    def committed(*_: object, **__: object) -> list[TopicPartition]:
        raise KafkaException(KafkaError(code))

    monkeypatch.setattr(FakeConsumer, "committed", committed)
    assert watch.lag() == {0: 10, 1: 10}
    code = KafkaError.COORDINATOR_LOAD_IN_PROGRESS  # another answer comes later
    with pytest.raises(KafkaException):
        watch.lag()
    with pytest.raises(WaitTimeout, match="the group is behind by"):
        watch.wait_until_drained(0.1)
