"""Faults on clients: real workers on mock brokers where these suffice, otherwise workers in memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from faults import _workers, fence_producer, rebalance
from faults.fence_producer import FenceProducer
from faults.kill_worker import KillWorker
from faults.pause_worker import PauseWorker
from faults.rebalance import Group, Rebalance
from harness import registry
from harness.clients.confluent import ConfluentProducer
from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import (
    Bite,
    Counters,
    Fault,
    Lane,
    Mode,
    Node,
    ProducerLost,
    ProducerSpec,
    TopicSettings,
    WorkerNode,
)
from harness.errors import FaultError
from harness.kafka.admin import Administrator
from harness.kafka.protocol import raw_client
from harness.kafka.protocol.transactions import ProducerIdentity, init_producer_id
from harness.ledger.journal import EventLog
from harness.ledger.message import run_number
from harness.ledger.rundir import RunDir
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import fault_of
from harness.testing.check_fault import check_fault
from harness.waiting import wait_until
from harness.workers.pool import Worker
from harness.workloads.produce_consume import ProduceConsume
from tests.fake_arena import IMPATIENT, FakeArena, FakeNode, make_arena
from tests.fake_server import serve

# --- real workers on mock brokers -----------------------------------------------------------------


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


# --- workers in memory ----------------------------------------------------------------------------


@dataclass
class FakeWorker:
    """Makes progress whenever its counters are read, as long as it runs; a `stubborn` worker does not obey."""

    name: str
    role: str = "producer"
    transactional_id: str = ""
    client_settings: Mapping[str, Any] = field(default_factory=dict)
    stays_in_group: bool = False
    stubborn: bool = False
    lazy: bool = False
    alive: bool = True
    stopped: bool = False
    sessions: int = 1
    records: int = 0
    moment: str = ""  # where it waits, as soon as it is asked to

    def stop_at(self, moment: str) -> None:
        self.moment = "" if self.lazy else moment

    def waits(self) -> bool:
        return bool(self.moment)

    def go_on(self) -> None:
        self.moment = ""

    def worked_on(self) -> Mapping[int, int]:
        return {0: 7}

    def kill(self) -> None:
        self.alive = self.stubborn

    def restart(self) -> None:
        self.alive = True

    def running(self) -> bool:
        return self.alive

    def pause(self) -> None:
        self.stopped = not self.stubborn

    def resume(self) -> None:
        self.stopped = False

    def paused(self) -> bool:
        return self.stopped

    def counters(self) -> Counters:
        self.records += self.alive and not self.stopped and not self.lazy
        acked, delivered = (0, self.records) if self.role == "consumer" else (self.records, 0)
        return Counters(acked=acked, delivered=delivered, sessions=self.sessions)


@dataclass
class WorkersArena(FakeArena):
    fakes: list[FakeWorker] = field(default_factory=list)

    def nodes(self) -> list[Node]:
        return [*self.cluster.nodes(), *self.fakes]


@pytest.fixture
def arena() -> WorkersArena:
    producer = FakeWorker("producer-1", transactional_id="orders-producer-1")
    consumer = FakeWorker("consumer-1", "consumer", "", {"group.protocol": "classic"}, True)
    made = WorkersArena(make_arena().cluster, fakes=[producer, consumer])
    made.cluster.coordinators[("orders-producer-1", True)] = "broker-2"
    return made


@pytest.fixture
def impatient(arena: WorkersArena) -> None:
    arena.patience = IMPATIENT


def held(fault: Fault, arena: WorkersArena, *nodes: Node) -> Bite:
    with fault.hold(arena, nodes) as bite:
        return bite


ALL: list[Fault] = [KillWorker(), PauseWorker(), FenceProducer(), Rebalance()]


@pytest.mark.parametrize("fault", ALL, ids=str)
def test_is_found_by_its_name_and_needs_workers(arena: WorkersArena, fault: Fault) -> None:
    assert registry.load("fault", str(fault))() == fault
    assert not held(fault, arena).bit, "without a target nothing bites"
    assert not isinstance(FakeNode("broker-1"), fault.needs)
    with pytest.raises(FaultError, match="broker-1 is not a worker"):
        held(fault, arena, FakeNode("broker-1"))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [KillWorker(), PauseWorker()], ids=str)
def test_kill_and_pause_bite_only_workers_that_obey(arena: WorkersArena, fault: Fault) -> None:
    check_fault(fault, arena, arena.fakes)
    arena.fakes[0].stubborn = True
    bite = held(fault, arena, *arena.fakes)
    assert not bite.bit
    assert "producer-1" in bite.proof


@pytest.mark.usefixtures("impatient")
def test_a_pause_of_an_idle_worker_proves_nothing(arena: WorkersArena) -> None:
    arena.fakes[1].lazy = True
    bite = held(PauseWorker(), arena, *arena.fakes)
    assert (bite.bit, bite.proof) == (False, "consumer-1 made no progress before it was paused either")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("later", "bit"),
    [({0: 8, 1: 3, 2: 1}, True), ({0: 8, 1: 2, 2: 1}, False), ({0: 8, 2: 1}, False), ({0: 8, 1: 3}, False)],
    ids=str,
)
def test_a_pause_can_last_until_the_group_has_committed_further(
    arena: WorkersArena, monkeypatch: pytest.MonkeyPatch, later: dict[int, int], bit: bool
) -> None:
    """Every partition with records counts, also one without a commit: the paused worker may have records of any.

    Partition 2 has records and no commit, partition 3 is empty.
    """
    at_first = iter([{0: 7, 1: 2}, {0: 7, 1: 2}])
    fault = PauseWorker(until_overtaken=True)
    monkeypatch.setattr(
        Administrator,
        "committed",
        lambda _self, group: next(at_first, later) if group == arena.group else {},
    )
    monkeypatch.setattr(Administrator, "offsets", lambda _self: {0: (0, 9), 1: (0, 9), 2: (0, 9), 3: (0, 0)})
    monkeypatch.setattr(Administrator, "__init__", lambda *_: None)
    bite = held(fault, arena, arena.fakes[0])
    assert bite.bit == bit, bite.proof
    assert f"{{0: 7, 1: 2, 2: 0}} then, {later} now" in bite.proof
    assert ("overtaken_s" in bite.measured) == bit
    assert fault_of(fault.describe()) == fault != PauseWorker()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [KillWorker(), PauseWorker(), FenceProducer()], ids=str)
def test_healing_is_not_claimed_without_progress(arena: WorkersArena, fault: Fault) -> None:
    worker = arena.fakes[0]
    assert fault.healed(arena, [worker]).healed
    worker.lazy = True
    assert "nothing new acked by or delivered to producer-1" in fault.healed(arena, [worker]).proof
    worker.alive, worker.stopped = False, True
    assert not fault.healed(arena, [worker]).healed


@pytest.mark.usefixtures("impatient")
def test_kill_and_pause_say_what_is_left(arena: WorkersArena) -> None:
    arena.fakes[0].alive = False
    assert "producer-1 not running" in KillWorker().healed(arena, arena.fakes).proof
    arena.fakes[0].stopped = True
    assert "producer-1 still stopped" in PauseWorker().healed(arena, arena.fakes).proof


# --- fencing --------------------------------------------------------------------------------------


@pytest.fixture
def hijacked(arena: WorkersArena, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Errors that the coordinator returns, one per request; when none is left, the worker is fenced."""
    errors: list[int] = []

    def give(
        address: raw_client.Address, transactional_id: str, lasts_ms: int, timeout_s: float
    ) -> ProducerIdentity:
        assert (address[0], transactional_id) == ("broker-2", "orders-producer-1")
        if errors:
            return ProducerIdentity(errors.pop(0), -1, -1)
        arena.fakes[0].sessions += not arena.fakes[0].stubborn
        return ProducerIdentity(0, 4000, 7)

    monkeypatch.setattr(fence_producer, "init_producer_id", give)
    return errors


def test_fencing_reports_the_epoch_and_waits_for_the_new_session(
    arena: WorkersArena, hijacked: list[int]
) -> None:
    hijacked += [51, 16]
    checked = check_fault(FenceProducer(), arena, arena.fakes[:1])
    assert checked.bite.proof.startswith("id of producer-1 taken with producer id 4000, epoch 7; new session")
    assert checked.bite.measured["epoch"] == 7


@pytest.mark.usefixtures("impatient")
def test_fencing_without_effect_does_not_bite(arena: WorkersArena, hijacked: list[int]) -> None:
    hijacked += [53]
    bite = held(FenceProducer(), arena, arena.fakes[0])
    assert (bite.bit, bite.proof) == (False, "the id of producer-1 could not be taken: error 53 of broker-2")
    arena.fakes[0].stubborn = True
    assert held(FenceProducer(), arena, arena.fakes[0]).proof.endswith("no new session of producer-1")
    arena.cluster.coordinators.clear()
    assert held(FenceProducer(), arena, arena.fakes[0]).proof.endswith("taken: no coordinator")


def test_a_worker_without_an_id_cannot_be_fenced(arena: WorkersArena) -> None:
    with pytest.raises(FaultError, match="consumer-1 has no transactional id"):
        held(FenceProducer(), arena, arena.fakes[1])


# --- rebalancing ----------------------------------------------------------------------------------


@dataclass
class FakeGroup:
    """The run's own member, and passers-by as they come."""

    stable: bool = True
    visitors: int = 0
    lets_in: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    def ask(self, cluster: object, group: str) -> Group:
        assert group == "orders-group"
        members = {"consumer-1": 3, **{f"passer-by-{n}": 0 for n in range(self.visitors)}}
        return Group(self.stable, members, self.visitors)

    def passer_by(self, arena: object, settings: Mapping[str, Any]) -> FakeGroup:
        self.settings = settings
        return self

    def join(self) -> None:
        self.visitors += self.lets_in

    def leave(self) -> None:
        self.visitors = 0


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> FakeGroup:
    group = FakeGroup()
    monkeypatch.setattr(rebalance, "ask_group", group.ask)
    monkeypatch.setattr(rebalance, "PasserBy", group.passer_by)
    return group


def test_a_passer_by_is_counted_and_leaves(arena: WorkersArena, group: FakeGroup) -> None:
    checked = check_fault(Rebalance(), arena, arena.fakes[1:])
    assert checked.bite.proof.startswith("orders-group went from 1 to 2 members and rebalanced")
    assert group.settings == {"group.protocol": "classic"}, "all members agree on how the group works"
    assert group.visitors == 0


@pytest.mark.usefixtures("impatient")
def test_a_passer_by_that_is_not_let_in_does_not_bite(arena: WorkersArena, group: FakeGroup) -> None:
    group.lets_in = False
    assert "not taken into orders-group" in held(Rebalance(), arena, arena.fakes[1]).proof
    group.lets_in, group.stable = True, False
    assert not held(Rebalance(), arena, arena.fakes[1]).bit, "a group that is not stable has not rebalanced"


@pytest.mark.usefixtures("impatient")
def test_a_group_with_strangers_is_not_healed(arena: WorkersArena, group: FakeGroup) -> None:
    assert Rebalance().healed(arena, arena.fakes[1:]).healed
    group.visitors = 1
    assert "not stable with 1 members" in Rebalance().healed(arena, arena.fakes[1:]).proof
    group.visitors, group.stable = 0, False
    assert not Rebalance().healed(arena, arena.fakes[1:]).healed
    arena.fakes[1].alive = False
    group.stable = True
    assert not Rebalance().healed(arena, arena.fakes[1:]).healed


def test_only_consumers_have_a_group(arena: WorkersArena) -> None:
    with pytest.raises(FaultError, match="producer-1 is not a consumer"):
        held(Rebalance(), arena, arena.fakes[0])
