"""Real workers with the real client on mock brokers: killed at random moments, nothing is missing."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness import ledger
from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import Lane, Mode, Outcome
from harness.ledger import EventLog
from harness.message import run_number
from harness.rundir import RunDir
from harness.scenario import ProducerSettings, Scenario, TopicSettings
from harness.waiting import wait_until
from harness.workers import Worker
from harness.workloads.produce_consume import ProduceConsume

PRODUCERS, KILLS_EACH = 4, 5
SCENARIO = Scenario(
    name="kills",
    mode=Mode.AT_LEAST_ONCE,
    topic=TopicSettings(partitions=PARTITIONS),
    producers=ProducerSettings(keyed=2, keyless=2, records_per_s=3000),
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryCluster]:
    with MemoryCluster(tmp_path / "cluster") as cluster:
        yield cluster


def test_twenty_killed_producers_leave_no_record_without_its_attempt(
    tmp_path: Path, memory: MemoryCluster
) -> None:
    run, topic = RunDir.create(tmp_path, "kills"), "onceproof-kills"
    memory.create_topic(topic, SCENARIO.topic)
    more = {
        "client": "confluent",
        "run": run_number(run.run_id),
        "bootstrap": memory.bootstrap_servers(Lane.PRODUCE),
    }
    events = EventLog(run.ledger / "harness.events", "harness")
    roles = [r for r in ProduceConsume(SCENARIO, topic, "unused").roles() if r["role"] == "producer"]
    workers = [Worker({**role, **more}, run, events) for role in roles]
    moments = random.Random(11)
    for _ in range(KILLS_EACH):
        for worker in workers:
            worker.restart()
        for worker in workers:
            before = worker.counters().acked
            wait_until(lambda w=worker, b=before: w.counters().acked > b, 20.0, "no acks")  # type: ignore[misc]
        for worker in workers:
            time.sleep(moments.uniform(0, 0.1))
            worker.kill()

    reader = Worker(
        {"role": "final_reader", "name": "final-reader", "topics": [{"name": topic, "partitions": PARTITIONS}],
         "mode": "at_least_once", "limit_s": 30.0, **more}, run, events
    )  # fmt: skip
    reader.start()
    reader.wait(45)
    rows, _ = ledger.read_deliveries(run.ledger / "final-reader.0.read_uncommitted.log")
    journals = {int(p.suffixes[-2][1:]): ledger.read_attempts(p) for p in run.ledger.glob("*.attempts")}
    assert len(journals) == PRODUCERS * KILLS_EACH
    for session, attempts in journals.items():
        logged = rows[rows["session"] == session]
        assert len(logged) > 0, f"session {session}: nothing in the log"
        assert logged["seq"].max() < len(attempts), f"session {session}: in the log but never attempted"
        # No acked record is missing, and each stands at the place it was told.
        acked = np.flatnonzero(attempts["outcome"] == Outcome.ACKED)
        assert len(acked) > 0
        place = {int(r["seq"]): (int(r["partition"]), int(r["offset"])) for r in logged}
        for seq in acked.tolist():
            assert place[seq] == (attempts["told_partition"][seq], attempts["offset"][seq])
