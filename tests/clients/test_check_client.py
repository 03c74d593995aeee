"""The check of clients: it passes for the confluent client, and fails for readers that lie."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest

from harness import registry
from harness.clients.confluent import Confluent, ConfluentProducer
from harness.clients.lying import LIES
from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import OnOutcome, ProducerSpec, TopicSettings
from harness.errors import WaitTimeout
from harness.ledger.message import Message
from harness.testing.check_client import check_client


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryCluster]:
    with MemoryCluster(tmp_path_factory.mktemp("clients")) as cluster:
        yield cluster


@pytest.mark.parametrize("name", [name for name in registry.names("client") if name != "lying"])
def test_a_client_fulfils_its_contract(cluster: MemoryCluster, name: str) -> None:
    cluster.create_topic(f"check-{name}", TopicSettings(partitions=PARTITIONS))
    check_client(registry.load("client", name)(), cluster, f"check-{name}", PARTITIONS)


@pytest.mark.parametrize("lie", sorted(LIES.keys() - {"die", "lose_effect"}))
def test_a_reader_that_lies_fails(cluster: MemoryCluster, lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEPROOF_LIE", lie)
    cluster.create_topic(f"lie-{lie}", TopicSettings(partitions=PARTITIONS))
    with pytest.raises((AssertionError, WaitTimeout)):
        check_client(registry.load("client", "lying")(), cluster, f"lie-{lie}", PARTITIONS, limit_s=5.0)


class OtherThread(ConfluentProducer):
    """Reports each outcome in a thread of its own."""

    def send(self, message: Message, on_outcome: OnOutcome) -> None:
        def report(*outcome: int) -> None:
            thread = Thread(target=on_outcome, args=outcome)
            thread.start()
            thread.join()

        super().send(message, report)


class OtherThreadClient(Confluent):
    def open_producer(self, settings: ProducerSpec) -> ConfluentProducer:
        return OtherThread(settings)


def test_outcomes_in_another_thread_fail(cluster: MemoryCluster) -> None:
    cluster.create_topic("other-thread", TopicSettings(partitions=PARTITIONS))
    with pytest.raises(AssertionError, match="in the thread of the caller"):
        check_client(OtherThreadClient(), cluster, "other-thread", PARTITIONS)
