"""raise_min_isr on brokers in memory: logs that stop growing, the settings that it restores, and runs without effect."""

from __future__ import annotations

import pytest

from faults.raise_min_isr import MIN_ISR, NOT_ENOUGH_REPLICAS, RaiseMinIsr
from harness.errors import UsageError
from harness.kafka import admin
from harness.kafka.protocol import produce
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT, FakeArena
from tests.faults.operated import Brokers, OperatedCluster, make_operated

CORRUPT = 2
FAULT = RaiseMinIsr()


@pytest.fixture
def arena() -> FakeArena:
    """An arena with a stopped broker."""
    arena = make_operated()
    arena.patience = IMPATIENT
    arena.cluster.brokers[2].kill()
    return arena


@pytest.fixture
def brokers(arena: FakeArena, monkeypatch: pytest.MonkeyPatch) -> Brokers:
    assert isinstance(arena.cluster, OperatedCluster)
    brokers = Brokers(arena.cluster, overrides={MIN_ISR: "2"})
    monkeypatch.setattr(admin, "admin_requests", brokers)
    monkeypatch.setattr(admin, "AdminClient", lambda settings: brokers)
    monkeypatch.setattr(
        produce, "refusal", lambda *asked: CORRUPT if brokers.accepts else NOT_ENOUGH_REPLICAS
    )
    return brokers


def test_passes_the_check_of_its_contract(arena: FakeArena, brokers: Brokers) -> None:
    checked = check_fault(FAULT, arena, arena.cluster.brokers[:1])
    assert checked.bite.measured["partitions_refusing"] == 2
    assert brokers.overrides == {MIN_ISR: "2"}


def test_the_undo_returns_when_logs_grow_again(arena: FakeArena, brokers: Brokers) -> None:
    with FAULT.hold(arena, arena.cluster.brokers[:1]) as bite:
        assert bite.bit, bite.proof
        assert brokers.overrides == {MIN_ISR: "3"}
        before = dict(brokers.bounds)
    assert all(brokers.bounds[number][1] > end for number, (_, end) in before.items())


def test_a_topic_without_the_setting_has_none_afterwards(arena: FakeArena, brokers: Brokers) -> None:
    brokers.overrides = {}
    with FAULT.hold(arena, arena.cluster.brokers[:1]) as bite:
        assert bite.bit, bite.proof
    assert brokers.overrides == {}
    assert FAULT.healed(arena, arena.cluster.brokers[:1]).healed


def test_without_a_target_nothing_is_done(arena: FakeArena, brokers: Brokers) -> None:
    with FAULT.hold(arena, []) as bite:
        assert not bite.bit
    assert brokers.calls == []


def test_it_does_not_bite_if_all_replicas_are_in_sync(arena: FakeArena, brokers: Brokers) -> None:
    arena.cluster.brokers[2].restart()
    with FAULT.hold(arena, arena.cluster.brokers[:1]) as bite:
        assert not bite.bit
        assert "a replica out of sync" in bite.proof


def test_it_does_not_bite_if_the_setting_is_not_changed(arena: FakeArena, brokers: Brokers) -> None:
    brokers.refusing = True
    with FAULT.hold(arena, arena.cluster.brokers[:1]) as bite:
        assert not bite.bit
        assert brokers.calls, "it was tried"


def test_it_needs_no_producers(arena: FakeArena, brokers: Brokers) -> None:
    brokers.written = 0
    assert check_fault(FAULT, arena, arena.cluster.brokers[:1]).bite.bit


def test_a_bad_setting_is_named() -> None:
    with pytest.raises(UsageError, match="to=1"):
        RaiseMinIsr(to=1)
