"""Real workers with the real client on mock brokers: killed at random moments, nothing is missing."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import Lane, Mode, Outcome, TopicSettings, TopicToRead
from harness.ledger import journal, reading
from harness.ledger.message import run_number
from harness.ledger.rundir import RunDir
from harness.scenario import ProducerSettings, Scenario
from harness.waiting import wait_until
from harness.workers.pool import Workers
from harness.workers.roles.final_reader import FinalReaderSpec
from harness.workers.worker import Worker
from harness.workloads.produce_consume import ProduceConsume

KILLS = 20  # by default; --times N makes it N
KILLS_A_RUN = 100  # mock brokers delete records beyond some megabytes of a partition
PRODUCERS = 4  # at a time
SCENARIO = Scenario(
    name="kills",
    mode=Mode.AT_LEAST_ONCE,
    topic=TopicSettings(partitions=PARTITIONS),
    producers=ProducerSettings(keyed=2, keyless=2, records_per_s=2000),
)
BEGIN_LIMIT_S = 60.0


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryCluster]:
    with MemoryCluster(tmp_path / "cluster") as cluster:
        yield cluster


def _has_acked(one: Worker, more_than: int) -> bool:
    return one.counters().acked > more_than


def _kill_again_and_again(one: Worker, kills: int, moments: random.Random) -> None:
    """Start the worker, wait for its first ack and kill it soon after, `kills` times."""
    for _ in range(kills):
        before = one.counters().acked
        one.restart()
        wait_until(partial(_has_acked, one, before), BEGIN_LIMIT_S, "no acks", every_s=0.005)
        time.sleep(moments.uniform(0, 0.1))
        one.kill()


@pytest.mark.timeout(7200)
def test_killed_producers_leave_no_record_without_its_attempt(
    tmp_path: Path, memory: MemoryCluster, request: pytest.FixtureRequest
) -> None:
    """Whenever producers are killed: every record in the log has its attempt, and every acked record is at its offset."""
    left = request.config.getoption("--times") or KILLS
    moments = random.Random(11)
    while left:
        kills = min(left, KILLS_A_RUN)
        _kill_and_compare(tmp_path, memory, kills, moments)
        left -= kills


def _kill_and_compare(tmp_path: Path, memory: MemoryCluster, kills: int, moments: random.Random) -> None:
    run = RunDir.create(tmp_path, "kills")
    topic = f"onceproof-kills-{run.path.name}"
    memory.create_topic(topic, SCENARIO.topic)
    number, bootstrap = run_number(run.run_id), memory.bootstrap_servers(Lane.PRODUCE)
    book = journal.Ledger(run.ledger, "harness")
    roles = ProduceConsume(SCENARIO, topic, "unused").producers()
    workers = [Worker(replace(role, run=number, bootstrap=bootstrap), run, book.events) for role in roles]
    each = [kills // PRODUCERS + (number < kills % PRODUCERS) for number in range(PRODUCERS)]
    with Workers(workers), ThreadPoolExecutor(PRODUCERS) as side_by_side:
        seeds = [random.Random(moments.random()) for _ in range(PRODUCERS)]
        list(side_by_side.map(_kill_again_and_again, workers, each, seeds))

    reader = Worker(
        FinalReaderSpec(
            name="final-reader", mode=SCENARIO.mode, lane=Lane.CONTROL, run=number, bootstrap=bootstrap,
            topics=(TopicToRead(topic, PARTITIONS),), limit_s=240.0,
        ), run, book.events
    )  # fmt: skip
    reader.start()
    reader.wait(300)
    reader.check()
    book.close()
    rows, _ = reading.read_deliveries(run.ledger / "final-reader.0.read_uncommitted.log")
    journals = {int(p.suffixes[-2][1:]): reading.read_attempts(p) for p in run.ledger.glob("*.attempts")}
    events = list(reading.read_events(run.ledger / "harness.events"))
    first = {
        int(number): int(rows["offset"][rows["partition"] == number].min())
        for number in np.unique(rows["partition"])
    }
    assert not any(first.values()), f"the brokers have deleted records: {first}"
    assert len(journals) == kills
    assert sum(e["event"] == "worker" and e["state"] == "killed" for e in events) == kills
    assert [e for e in events if e["event"] == "error"] == []
    acked_in_all = 0
    for session, attempts in journals.items():
        logged = rows[rows["session"] == session]
        assert len(logged) > 0, f"session {session}: nothing in the log"
        assert logged["seq"].max() < len(attempts), f"session {session}: in the log but never attempted"
        # No acked record is missing, and each is at the position of its ack.
        acked = np.flatnonzero(attempts["outcome"] == Outcome.ACKED)
        assert len(acked) > 0
        place = np.full((len(attempts), 2), -1, dtype=np.int64)
        place[logged["seq"]] = np.column_stack([logged["partition"], logged["offset"]])
        acked_at = np.column_stack([attempts["told_partition"][acked], attempts["offset"][acked]])
        wrong = np.flatnonzero((place[acked] != acked_at).any(axis=1))
        assert not len(wrong), f"session {session}: message {acked[wrong[0]]} is not where it was acked"
        acked_in_all += len(acked)
    print(f"{kills} kills, {acked_in_all} acked records, {len(rows)} in the log")
