"""elect_unclean on brokers in memory: which partitions it has a leader elected for, and what proves it."""

from __future__ import annotations

import pytest

from faults.elect_unclean import ElectUnclean
from harness.contracts import PartitionState
from harness.kafka import admin
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT, FakeArena
from tests.faults.operated import Brokers, OperatedCluster, make_operated


@pytest.fixture
def arena() -> FakeArena:
    """All brokers are back, none is in sync, so no partition has a leader."""
    arena = make_operated()
    arena.patience = IMPATIENT
    assert isinstance(arena.cluster, OperatedCluster)
    arena.cluster.behind = {broker.name for broker in arena.cluster.brokers}
    return arena


@pytest.fixture
def brokers(arena: FakeArena, monkeypatch: pytest.MonkeyPatch) -> Brokers:
    assert isinstance(arena.cluster, OperatedCluster)
    brokers = Brokers(arena.cluster)
    monkeypatch.setattr(admin, "admin_requests", brokers)
    monkeypatch.setattr(admin, "AdminClient", lambda settings: brokers)
    return brokers


def test_passes_the_check_of_its_contract(arena: FakeArena, brokers: Brokers) -> None:
    checked = check_fault(ElectUnclean(), arena, arena.cluster.brokers)
    assert checked.bite.measured["partitions"] == 2
    assert checked.bite.proof.startswith("broker-1 leads orders-0 (and 1 more)")
    assert brokers.calls == ["elect unclean [0, 1]"]


def test_partitions_with_a_leader_are_left_alone(arena: FakeArena, brokers: Brokers) -> None:
    assert isinstance(arena.cluster, OperatedCluster)
    arena.cluster.behind.clear()
    with ElectUnclean().hold(arena, arena.cluster.brokers) as bite:
        assert not bite.bit
        assert "every partition has a leader" in bite.proof
    assert brokers.calls == []


def test_a_refused_election_does_not_bite(
    arena: FakeArena, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokers, "elect", lambda *_: {0: "not now"})
    with ElectUnclean().hold(arena, arena.cluster.brokers) as bite:
        assert not bite.bit
        assert "still have no leader" in bite.proof


def test_the_election_of_a_replica_in_sync_is_a_clean_one(arena: FakeArena, brokers: Brokers) -> None:
    def state(leader: str | None, epoch: int) -> PartitionState:
        return PartitionState("orders", 0, leader, epoch, ("broker-1", "broker-2"), ("broker-1",))

    answers = iter([[state(None, 4)], [], []])
    arena.cluster.partitions = lambda topic: next(answers, [state("broker-1", 5)])  # type: ignore[method-assign]
    with ElectUnclean().hold(arena, arena.cluster.brokers) as bite:
        assert not bite.bit
        assert "broker-1 leads orders-0, which is no unclean election" in bite.proof


def test_without_a_target_nothing_is_done(arena: FakeArena, brokers: Brokers) -> None:
    with ElectUnclean().hold(arena, []) as bite:
        assert not bite.bit
    assert brokers.calls == []
