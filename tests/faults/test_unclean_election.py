"""An unclean election, step by step, and the same outage without the election, on brokers that are simulated."""

from __future__ import annotations

import pytest

from faults.unclean_election import UncleanElection
from harness.errors import FaultError
from harness.kafka import admin
from tests.fake_arena import IMPATIENT, FakeArena
from tests.faults.operated import Brokers, OperatedCluster, make_operated, node, places


@pytest.fixture
def arena() -> FakeArena:
    return make_operated()


@pytest.fixture
def brokers(arena: FakeArena, monkeypatch: pytest.MonkeyPatch) -> Brokers:
    assert isinstance(arena.cluster, OperatedCluster)
    brokers = Brokers(arena.cluster, committed={0: 200, 1: 200})
    monkeypatch.setattr(admin, "admin_requests", brokers)
    monkeypatch.setattr(admin, "AdminClient", lambda settings: brokers)
    return brokers


@pytest.fixture
def impatient(arena: FakeArena) -> None:
    arena.patience = IMPATIENT


def test_an_unclean_election_goes_step_by_step(arena: FakeArena, brokers: Brokers) -> None:
    with UncleanElection().hold(arena, [node(arena, 3)]) as bite:
        assert bite.bit, bite.proof
        assert bite.measured["offsets_behind"] > 0
        assert [leader for leader, _ in places(arena)] == ["broker-3", "broker-3"]
        assert not node(arena, 1).running()
    assert node(arena, 3).calls == ["pause", "resume", "resume"]
    assert [node(arena, number).calls for number in (1, 2)] == [["kill", "restart"]] * 2
    assert brokers.calls == ["elect unclean [0, 1]"]


def test_without_an_election_the_partitions_wait_for_the_other_brokers(
    arena: FakeArena, brokers: Brokers
) -> None:
    with UncleanElection(elect=False).hold(arena, [node(arena, 3)]) as bite:
        assert bite.bit, bite.proof
        assert [leader for leader, _ in places(arena)] == [None, None]
        assert node(arena, 3).running()
    assert brokers.calls == []
    assert [node(arena, number).calls for number in (1, 2)] == [["kill", "restart"]] * 2


@pytest.mark.usefixtures("impatient")
def test_an_unclean_election_needs_writers(arena: FakeArena, brokers: Brokers) -> None:
    brokers.written = 0
    fault = UncleanElection()
    with fault.hold(arena, [node(arena, 3)]) as bite:
        assert not bite.bit
        assert "fewer than 200 records were written" in bite.proof
        assert "does not run" in fault.healed(arena, [node(arena, 3)]).proof
    assert node(arena, 1).calls == ["restart"], "no broker was killed for nothing"
    assert fault.healed(arena, [node(arena, 3)]).healed


def test_an_unclean_election_that_loses_nothing_does_not_bite(arena: FakeArena, brokers: Brokers) -> None:
    brokers.end_of_epoch = lambda *_: 1 << 40  # type: ignore[method-assign]
    with UncleanElection().hold(arena, [node(arena, 3)]) as bite:
        assert not bite.bit
        assert "behind by 0 offsets" in bite.proof


def test_an_unclean_election_is_refused_where_it_cannot_work(arena: FakeArena, brokers: Brokers) -> None:
    with pytest.raises(FaultError, match="one target"), UncleanElection().hold(arena, arena.cluster.brokers):
        pass
    arena.cluster.controllers = lambda: ["broker-1", "broker-3"]  # type: ignore[method-assign]
    with (
        pytest.raises(FaultError, match=r"broker-1 cannot be killed"),
        UncleanElection().hold(arena, [node(arena, 3)]),
    ):
        pass
    assert node(arena, 3).calls == []
