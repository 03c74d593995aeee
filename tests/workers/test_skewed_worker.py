"""Wrong clocks of real workers on mock brokers: record timestamps are wrong, and everything else works as before."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition

from faults.kill import Kill
from faults.skew_clock import SkewClock
from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import Lane, Mode, Node, Skewable, TopicSettings
from harness.errors import ClusterError
from harness.ledger.journal import EventLog
from harness.ledger.message import run_number
from harness.ledger.rows import ATTEMPT, ATTEMPT_MARK
from harness.ledger.rundir import RunDir
from harness.machine import fake_clock
from harness.provision.faketime import find_faketime
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once, overlapping
from harness.targets import consumer, leader_of, producer
from harness.targets import worker as named_worker
from harness.testing.check_fault import check_fault
from harness.waiting import wait_until
from harness.workers.skewed_worker import ClockedWorker, workers_with_clocks
from harness.workers.worker import Worker
from harness.workloads.produce_consume import ProduceConsume

RATE = 200
SHOWN_WITHIN_S = 1.0
needs_faketime = pytest.mark.skipif(find_faketime() is None, reason="libfaketime is not on this machine")


@dataclass(frozen=True)
class ClockArena:
    cluster: MemoryCluster
    worker: ClockedWorker
    run: RunDir
    topic: str = "onceproof-clocks"
    group: str = "onceproof-clocks-group"
    patience: float = 1.0

    def nodes(self) -> list[Node]:
        return [self.worker]


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClockArena]:
    folder = tmp_path_factory.mktemp("clocks")
    with MemoryCluster(folder / "cluster") as cluster:
        settings = TopicSettings(partitions=PARTITIONS)
        cluster.create_topic(ClockArena.topic, settings)
        producers = ProducerSettings(keyed=0, keyless=1, records_per_s=RATE)
        scenario = Scenario(name="clocks", mode=Mode.IDEMPOTENT, topic=settings, producers=producers)
        run = RunDir.create(folder, "clocks")
        events = EventLog(run.ledger / "harness.events", "harness")
        roles = ProduceConsume(scenario, ClockArena.topic, ClockArena.group).roles()
        (role,) = [role for role in roles if role.name == "producer-1"]
        bootstrap = cluster.bootstrap_servers(Lane.PRODUCE)
        spec = replace(role, run=run_number(run.run_id), bootstrap=bootstrap)
        worker = ClockedWorker(spec, run, events, shown_within_s=SHOWN_WITHIN_S)
        try:
            worker.start()
            wait_until(lambda: worker.counters().acked > 0, 30.0, "no progress")
            yield ClockArena(cluster, worker, run)
        finally:
            worker.kill()
            worker.right_clock()


def newest_record_is_off_by_s(arena: ClockArena) -> float:
    """Return the difference between a new record's timestamp and the real time."""
    # Records with earlier timestamps stay in the producer's queue for 20 ms and would count as new.
    time.sleep(0.5)
    reader = Consumer(
        {"bootstrap.servers": arena.cluster.bootstrap_servers(Lane.CONTROL), "group.id": "onceproof-looker"}
    )
    ends = {}
    for partition in range(PARTITIONS):
        place = TopicPartition(arena.topic, partition)
        ends[partition] = reader.get_watermark_offsets(place, timeout=10.0)[1]
    asked = time.time()
    reader.assign([TopicPartition(arena.topic, partition, end) for partition, end in ends.items()])
    record = reader.poll(10.0)
    reader.close()
    assert record is not None, "nothing was produced"
    return float(record.timestamp()[1]) / 1000 - asked


@needs_faketime
@pytest.mark.parametrize("fault", [SkewClock(60.0), SkewClock(-7200.0)], ids=str)
def test_record_timestamps_are_wrong_and_the_work_goes_on(arena: ClockArena, fault: SkewClock) -> None:
    assert isinstance(arena.worker, Skewable)
    assert abs(newest_record_is_off_by_s(arena)) < 2.0, "nothing was done yet"
    with fault.hold(arena, [arena.worker]) as bite:
        assert bite.bit, bite.proof
        before, begun = arena.worker.counters().acked, time.monotonic()
        assert newest_record_is_off_by_s(arena) == pytest.approx(fault.offset_s, abs=2.0)
        wait_until(lambda: arena.worker.counters().acked > before + RATE * 3, 30.0, "it waits wrongly")
        assert time.monotonic() - begun > 1.5, "it does not wait at all"
    healing = fault.healed(arena, [arena.worker])
    assert healing.healed, healing.proof
    assert abs(newest_record_is_off_by_s(arena)) < 2.0


@needs_faketime
def test_a_worker_passes_the_check_of_the_contract(arena: ClockArena) -> None:
    checked = check_fault(SkewClock(30.0), arena, [arena.worker])
    assert checked.bite.measured["offset_s"] == pytest.approx(30.0, abs=0.5)
    assert checked.healing.measured["offset_s"] < 0.5


@needs_faketime
def test_the_ledger_keeps_the_right_time(arena: ClockArena) -> None:
    with SkewClock(3000.0).hold(arena, [arena.worker]) as bite:
        assert bite.bit, bite.proof
        arena.worker.kill()
        now_ns = time.monotonic_ns()
        (journal,) = arena.run.ledger.glob("producer-1.0.*.attempts")
        rows = np.fromfile(journal, dtype=ATTEMPT)
        times_ns = rows["t_attempt"][rows["attempt_mark"] == ATTEMPT_MARK]
        assert 0 < now_ns - times_ns.max() < 10 * 10**9
        assert (np.diff(times_ns) >= 0).all()
        arena.worker.restart()
        wait_until(lambda: _reports_clock(arena.worker), 20.0, "the worker does not report its clock")
        assert arena.worker.clock_offset_s() == pytest.approx(3000.0, abs=0.5), "it outlives a restart"
    assert SkewClock().healed(arena, [arena.worker]).healed


@needs_faketime
def test_a_paused_or_dead_worker_does_not_report_its_clock(
    arena: ClockArena,
) -> None:
    arena.worker.pause()
    time.sleep(SHOWN_WITHIN_S + 0.2)
    with pytest.raises(ClusterError, match="producer-1 does not report its clock"):
        arena.worker.clock_offset_s()
    arena.worker.resume()
    wait_until(lambda: _reports_clock(arena.worker), 10.0, "the worker does not report its clock")
    arena.worker.kill()
    with pytest.raises(ClusterError, match="producer-1 does not report its clock"):
        arena.worker.clock_offset_s()
    arena.worker.restart()
    wait_until(lambda: _reports_clock(arena.worker), 20.0, "the worker does not report its clock")


_WAITS = """
import json, queue, threading, time
from harness.machine import fake_clock
fake_clock.keep_waits_right()
from confluent_kafka import Consumer, KafkaException

def took(act):
    begun = time.monotonic()
    act()
    return time.monotonic() - begun

def no_answer():
    try:
        consumer.list_topics(timeout=0.3)
    except KafkaException:
        pass

def nothing_comes():
    try:
        queue.Queue().get(timeout=0.3)
    except queue.Empty:
        pass

consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "none", "log_level": 0})
consumer.subscribe(["none"])
waits = {
    "sleep": lambda: time.sleep(0.3),
    "event": lambda: threading.Event().wait(0.3),
    "queue": nothing_comes,
    "poll": lambda: consumer.poll(0.3),
    "consume": lambda: consumer.consume(9, 0.3),
    "list_topics": no_answer,
}
took_s = {name: took(act) for name, act in waits.items()}
print(json.dumps({"wall": fake_clock.wall_minus_monotonic_s(), **took_s}))
"""


@needs_faketime
@pytest.mark.parametrize("offset_s", [90.0, -90.0])
def test_waits_last_as_long_as_on_a_right_clock(tmp_path: Path, offset_s: float) -> None:
    clock = fake_clock.Clock(tmp_path / "clock")
    clock.set(fake_clock.Skew(offset_s))
    words = [str(word) for word in clock.under([sys.executable, "-c", _WAITS])]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True, cwd=root)
    took_s = json.loads(done.stdout.splitlines()[-1])
    assert took_s.pop("wall") - fake_clock.wall_minus_monotonic_s() == pytest.approx(offset_s, abs=0.5)
    assert {name: round(s, 2) for name, s in took_s.items() if not 0.28 < s < 2.0} == {}


def test_only_workers_whose_clock_is_set_run_with_a_fake_clock() -> None:
    schedule = overlapping(
        once(SkewClock(), on=producer(2)), once(SkewClock(), on=leader_of()), once(Kill(), on=consumer(1))
    )
    assert workers_with_clocks(schedule) == {"producer-2"}
    assert workers_with_clocks(once(SkewClock(), on=consumer(1))) == {"consumer-1"}
    assert workers_with_clocks(once(SkewClock(), on=named_worker("rival-1"))) == {"rival-1"}
    assert not hasattr(Worker, "skew_clock"), "else every worker would count as one whose clock can be set"


def _reports_clock(worker: ClockedWorker) -> bool:
    try:
        worker.clock_offset_s()
    except ClusterError:
        return False
    return True
