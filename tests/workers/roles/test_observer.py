"""Observers on mock brokers: they read all topics beside the group, to the end, and do not affect the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import Lane, Mode, TopicSettings, TopicToRead, WorkerSpec
from harness.ledger import reading
from harness.ledger.journal import EventLog
from harness.ledger.message import run_number
from harness.ledger.rundir import RunDir
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario
from harness.waiting import wait_until
from harness.workers.pool import Workers
from harness.workers.roles.final_reader import FinalReaderSpec
from harness.workers.roles.observer import ObserverRoleSpec
from harness.workers.worker import Worker
from harness.workloads.produce_consume import ProduceConsume

TOPICS = ("onceproof-observed", "onceproof-observed-too")
SCENARIO = Scenario(
    name="observed",
    mode=Mode.AT_LEAST_ONCE,
    topic=TopicSettings(partitions=PARTITIONS),
    producers=ProducerSettings(keyed=0, keyless=1, records_per_s=2000),
    observed=True,
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryCluster]:
    with MemoryCluster(tmp_path / "cluster") as cluster:
        yield cluster


def test_an_observer_reads_all_topics_to_the_end(tmp_path: Path, memory: MemoryCluster) -> None:
    run = RunDir.create(tmp_path, "observed")
    events = EventLog(run.ledger / "harness.events", "harness")
    number, bootstrap = run_number(run.run_id), memory.bootstrap_servers(Lane.CONSUME)
    topics = tuple(TopicToRead(name, PARTITIONS) for name in TOPICS)
    observer = ObserverRoleSpec(
        name="observer-uncommitted",
        mode=SCENARIO.mode,
        lane=Lane.CONSUME,
        topics=topics,
        isolation="read_uncommitted",
    )
    reads = FinalReaderSpec(
        name="final-reader", mode=SCENARIO.mode, lane=Lane.CONSUME, topics=topics, limit_s=30.0
    )
    roles: list[WorkerSpec] = [observer]
    for n, topic in enumerate(TOPICS):
        memory.create_topic(topic, SCENARIO.topic)
        [role] = ProduceConsume(SCENARIO, topic, "unused").producers()
        roles.append(replace(role, name=f"producer-{n + 1}", number=n + 1))
    made = [Worker(replace(role, run=number, bootstrap=bootstrap), run, events) for role in roles]
    with Workers(made) as workers:
        assert workers.observers == made[:1]
        assert workers.consumers == []
        workers.start()
        wait_until(lambda: made[0].counters().delivered > 0, 30.0, "the observer was given nothing")
        assert workers.counters().delivered == 0, "an observer is no progress of the group"
        workers.check()
        workers.stop(workers.producers, 30)
        workers.stop(workers.observers, 15)
    reader = Worker(replace(reads, run=number, bootstrap=bootstrap), run, events)
    reader.start()
    reader.wait(45)
    seen, _ = reading.read_deliveries(run.ledger / "observer-uncommitted.0.deliveries")
    log, _ = reading.read_deliveries(run.ledger / "final-reader.0.read_uncommitted.log")
    columns = ["partition", "offset", "session", "seq"]
    assert sorted(map(tuple, seen[columns].tolist())) == sorted(map(tuple, log[columns].tolist()))
    assert len(seen) > 0
    # Numbered by the order of its topics, as the final reader numbers them; the messages themselves say topic 0.
    assert set(seen["topic"].tolist()) == set(log["topic"].tolist()) == {0, 1}
    [event] = [
        e
        for e in reading.read_events(run.ledger / "observer-uncommitted.0.events")
        if e["event"] == "observer"
    ]
    assert (event["isolation"], event["topics"]) == ("read_uncommitted", list(TOPICS))
    [reached] = [
        e
        for e in reading.read_events(run.ledger / "observer-uncommitted.0.events")
        if e["event"] == "reached"
    ]
    assert (reached["complete"], reached["detail"]) == (True, "")


def test_a_group_that_reads_uncommitted_cannot_be_observed() -> None:
    with pytest.raises(ValueError, match="observed needs a group that reads read_committed"):
        Scenario(
            name="observed", mode=Mode.AT_LEAST_ONCE, observed=True,
            consumers=ConsumerSettings(isolation="read_uncommitted"),
        )  # fmt: skip
    assert SCENARIO.describe()["observed"] is True
