"""Lost records that are still in a replica: the run searches the replicas' logs before its topic is deleted."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from faults.kill import Kill
from faults.sever import Sever
from harness.campaign import Execute, Result
from harness.contracts import Arena, Bite, Cluster, Healing, Killable, Lane, Node, ReplicaLogs, TopicSettings
from harness.explain.questions import account_of_message
from harness.kafka import lost_record_search
from harness.kafka.batches import batches
from harness.kafka.segments import records
from harness.ledger import replica_events
from harness.ledger.query import Journals, MessageIdentity
from harness.ledger.reading import read_events
from harness.provision import java, kafka_libs
from harness.provision.kafka import kafka_tools
from harness.schedule import once, overlapping
from harness.targets import leader_of
from suites.hazards import acks1_failover


@dataclass(frozen=True)
class KillForGood(Kill):
    """A kill without a restart in this run, so that the log stays as it was."""

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        for node in nodes:
            assert isinstance(node, Killable)
            node.kill()
        yield Bite(True, f"{', '.join(node.name for node in nodes)} gone for good")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        return Healing(True, "left as it is, on purpose")


@dataclass(frozen=True)
class SeverTheDoomed(Sever):
    """A cut of a node that is dead at the end, so that its healing cannot be measured."""

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        return Healing(True, "mended; the node behind it is dead")


def searched(result: Result) -> list[Mapping[str, Any]]:
    events = read_events(result.run.ledger / "harness.events")
    return [event for event in events if event["event"] == "replicas"]


def killed(result: Result) -> str:
    """Return the node that was killed."""
    windows = result.reconciled["coverage"]["windows"]
    return str(next(w["nodes"][0] for w in windows if w["fault"] == "kill"))


@pytest.fixture
def whole_again(cluster: Cluster) -> Iterator[None]:
    """Restart the killed node at the end: other tests share the cluster."""
    yield
    for node in cluster.nodes():
        if isinstance(node, Killable):
            node.restart()


def test_a_leader_that_stays_down_still_has_the_lost_record(execute: Execute, whole_again: None) -> None:
    schedule = overlapping(
        once(SeverTheDoomed(shape="replication"), on=leader_of(0), after_s=0.5, hold_s=4.0),
        once(KillForGood(), on=leader_of(0), after_s=3.0, hold_s=1.5),
    )
    result = execute(replace(acks1_failover.UNSAFE, name="replicas-leader_stays_down", schedule=schedule))
    assert result.as_expected, result.explain()
    events, victim = searched(result), killed(result)
    assert 0 < len(events) <= lost_record_search.MOST_SUSPECTS
    for event in events:
        assert event["holders"] == [victim], event
        assert len(event["looked"]) == 3, event
        assert event["ends"][victim] > event["offset"], event
        assert replica_events.classify(event) == f"in the log of {victim}, not read"
    # It is the record that the finders report as lost, and explain names its place.
    lost = [f["messages"][0] for f in result.reconciled["findings"] if f["anomaly"] == "lost"]
    assert lost
    first = Journals(result.run).name(MessageIdentity(events[0]["session"], events[0]["seq"]))
    account = account_of_message(result.run, first)
    assert any(text.startswith("lost: ") for text in account.findings), account.text()
    assert f"in the log of {victim}, not read" in account.text()


def test_a_leader_that_comes_back_has_truncated_it(execute: Execute) -> None:
    result = execute(replace(acks1_failover.UNSAFE, name="replicas-leader_returns"))
    assert result.as_expected, result.explain()
    events = searched(result)
    assert 0 < len(events) <= lost_record_search.MOST_SUSPECTS
    assert {replica_events.classify(event) for event in events} == {replica_events.IN_NO_LOG}, events
    assert all(len(event["looked"]) == 3 for event in events)


# --- the reader of segment files compared with Kafka's own ------------------------------------------

_BATCH = re.compile(
    r"^baseOffset: (\d+) lastOffset: (\d+) .*partitionLeaderEpoch: (\d+) .*position: (\d+) .* size: (\d+) "
)


def dumped(segment: Path) -> list[tuple[int, ...]]:
    """Return first and last offset, leader epoch, position and size of each batch, as DumpLogSegments prints them."""
    jars = ":".join(f"{folder}/*" for folder in (kafka_libs(), kafka_tools()))
    command = [str(java()), "-cp", jars, "org.apache.kafka.tools.DumpLogSegments", "--files", str(segment)]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    return [tuple(map(int, match.groups())) for line in text.splitlines() if (match := _BATCH.match(line))]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_segments_are_read_as_kafka_reads_them(codec: str, cluster: Cluster) -> None:
    assert isinstance(cluster, ReplicaLogs)
    topic = f"onceproof-segments-{codec}"
    cluster.create_topic(topic, TopicSettings(partitions=1))
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers(Lane.CONTROL),
            "compression.type": codec,
            "linger.ms": 5,
        }
    )
    values = [f"value {number} of {codec} ".encode() * 4 for number in range(2000)]
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    for folder in cluster.replica_folders(topic, 0).values():
        segment = next(iter(folder.glob("*.log")))
        data = segment.read_bytes()
        found = list(batches(data))
        assert [(b.base, b.last, b.leader_epoch, b.position, b.size) for b in found] == dumped(segment)
        assert [value for b in found for _, value in records(data, b)] == values
    cluster.delete_topic(topic)
