"""Faults on clients, with workers in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from faults import fence_producer, rebalance
from faults.fence_producer import FenceProducer
from faults.kill_worker import KillWorker
from faults.pause_worker import PauseWorker
from faults.rebalance import Group, Rebalance
from harness import registry
from harness.contracts import (
    Bite,
    Fault,
    Node,
)
from harness.errors import FaultError
from harness.kafka.admin import Administrator
from harness.kafka.protocol import raw_client
from harness.kafka.protocol.transactions import ProducerIdentity
from harness.schedule import fault_of
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT, FakeNode
from tests.faults.fake_workers import WorkersArena, workers_in_memory


@pytest.fixture
def arena() -> WorkersArena:
    return workers_in_memory()


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
