"""Faults on real worker processes on mock brokers, and the request that fences a producer."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from faults import _workers
from faults.kill_worker import KillWorker
from faults.pause_worker import PauseWorker
from harness.clients.confluent import ConfluentProducer
from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import (
    Fault,
    Lane,
    Mode,
    Node,
    ProducerLost,
    ProducerSpec,
    TopicSettings,
    WorkerNode,
)
from harness.kafka.protocol.transactions import ProducerIdentity, init_producer_id
from harness.ledger.journal import EventLog
from harness.ledger.message import run_number
from harness.ledger.rundir import RunDir
from harness.scenario import ProducerSettings, Scenario
from harness.testing.check_fault import check_fault
from harness.waiting import wait_until
from harness.workers.worker import Worker
from harness.workloads.produce_consume import ProduceConsume
from tests.fake_server import serve


@dataclass(frozen=True)
class MockArena:
    cluster: MemoryCluster
    workers: list[Worker]
    topic: str = "onceproof-clients"
    group: str = "onceproof-clients-group"
    patience: float = 1.0

    def nodes(self) -> list[Node]:
        return list(self.workers)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockArena]:
    folder = tmp_path_factory.mktemp("clients")
    with MemoryCluster(folder / "cluster") as cluster:
        arena = MockArena(cluster, [])
        settings = TopicSettings(partitions=PARTITIONS)
        cluster.create_topic(arena.topic, settings)
        producers = ProducerSettings(keyed=1, keyless=1, records_per_s=500)
        scenario = Scenario(name="clients", mode=Mode.IDEMPOTENT, topic=settings, producers=producers)
        run = RunDir.create(folder, "clients")
        events = EventLog(run.ledger / "harness.events", "harness")
        number, bootstrap = run_number(run.run_id), cluster.bootstrap_servers(Lane.PRODUCE)
        for role in ProduceConsume(scenario, arena.topic, arena.group).roles():
            arena.workers.append(Worker(replace(role, run=number, bootstrap=bootstrap), run, events))
        try:
            for worker in arena.workers:
                worker.start()
            wait_until(lambda: all(_workers.done(arena.workers).values()), 30.0, "no progress")
            yield arena
        finally:
            for worker in arena.workers:
                worker.kill()


@pytest.mark.parametrize("fault", [KillWorker(), PauseWorker()], ids=str)
def test_real_producers_are_hit_and_go_on(real: MockArena, fault: Fault) -> None:
    producers = [worker for worker in real.workers if worker.role == "producer"]
    assert len(producers) == 2
    checked = check_fault(fault, real, producers)
    assert checked.healing.measured["new_records"] > 0


def test_a_worker_is_paused_when_the_kernel_says_so(real: MockArena) -> None:
    worker = real.workers[0]
    assert isinstance(worker, WorkerNode)
    assert not worker.paused()
    worker.pause()
    wait_until(worker.paused, 5.0, "not stopped")
    worker.resume()
    wait_until(lambda: not worker.paused(), 5.0, "still stopped")
    worker.kill()
    assert not worker.paused()
    worker.pause()  # does nothing to a worker that has ended
    worker.restart()


def test_only_transactional_producers_have_a_transactional_id(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "ids")
    events = EventLog(run.ledger / "harness.events", "harness")
    for mode, wanted in ((Mode.EXACTLY_ONCE, {"producer-1": "t-producer-1"}), (Mode.IDEMPOTENT, {})):
        scenario = Scenario(name="ids", mode=mode, producers=ProducerSettings(keyless=0))
        workers = [Worker(role, run, events) for role in ProduceConsume(scenario, "t", "g").roles()]
        assert {w.name: w.transactional_id for w in workers if w.transactional_id} == wanted


def test_a_broker_understands_the_request_for_an_id(real: MockArena) -> None:
    """Mock brokers return a new id each time, from any broker; suites test on real brokers that it fences."""
    places = [place.split(":") for place in real.cluster.bootstrap_servers(Lane.CONTROL).split(",")]
    answers = [init_producer_id((host, int(port)), "mine", 30_000, 5.0) for host, port in places]
    assert any(answer.error == 0 and answer.producer_id > 0 and answer.epoch >= 0 for answer in answers)


class FencedLibrary:
    """A producer of the library after it was fenced: every call raises that error."""

    def poll(self, timeout_s: float) -> int:
        raise KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))

    def flush(self, timeout_s: float) -> int:
        """Raise in the middle of a callback, which then seems to have failed."""
        try:
            return self.poll(timeout_s)
        except KafkaException as error:
            raise SystemError("returned a result with an exception set") from error

    def purge(self) -> None: ...


def test_a_fenced_producer_is_lost_and_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = ConfluentProducer(ProducerSpec("localhost:1", "t", Mode.IDEMPOTENT))
    monkeypatch.setattr(producer, "_producer", FencedLibrary())
    for call in (producer.poll, producer.flush):
        with pytest.raises(ProducerLost, match=f"{call.__name__}: _FENCED: fenced"):
            call(0.1)
    producer.close()


def test_the_request_for_an_id_is_laid_out_as_the_protocol_says(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = serve(monkeypatch, {22: (0, 1)}, [struct.pack(">ihqh", 0, 51, -1, -1)])
    assert init_producer_id(("nowhere", 1), "id", 7, 1.0) == ProducerIdentity(51, -1, -1)
    assert struct.unpack_from(">hh", sent[0], 4) == (22, 1)
    assert sent[0].endswith(b"\0\x02id\0\0\0\x07")
