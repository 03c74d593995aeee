"""Faults of operators on brokers in memory: their requests, their proofs, and what they restore."""

from __future__ import annotations

import pytest

from faults.add_partitions import AddPartitions
from faults.delete_records import DeleteRecords
from faults.reassign import Reassign
from faults.short_retention import ShortRetention
from faults.transfer_leadership import TransferLeadership
from faults.unclean_election import UncleanElection
from harness import registry
from harness.contracts import Fault
from harness.errors import ClusterError
from harness.kafka import admin
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT, FakeArena
from tests.faults.operated import Brokers, OperatedCluster, make_operated, node, places

FAULTS: list[tuple[Fault, str]] = [
    (TransferLeadership(), "transfer_leadership"),
    (Reassign(), "reassign"),
    (AddPartitions(), "add_partitions"),
    (AddPartitions(more=3), "add_partitions-3"),
    (DeleteRecords(), "delete_records"),
    (DeleteRecords(beyond_group=True), "delete_records-beyond_group"),
    (ShortRetention(), "short_retention"),
    (UncleanElection(), "unclean_election"),
]
EACH = [fault for fault, word in FAULTS if word != "add_partitions-3"]


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


@pytest.mark.parametrize(("fault", "word"), FAULTS, ids=str)
def test_passes_the_check_of_its_contract(
    arena: FakeArena, brokers: Brokers, fault: Fault, word: str
) -> None:
    assert str(fault) == word
    checked = check_fault(fault, arena, [node(arena, 2)])
    assert len(checked.bite.measured) > 1


@pytest.mark.parametrize("fault", EACH, ids=str)
def test_is_found_by_its_name_and_is_a_value(fault: Fault) -> None:
    name = str(fault.describe()["fault"])
    settings = {key: value for key, value in fault.describe().items() if key != "fault"}
    assert registry.load("fault", name)(**settings) == fault


@pytest.mark.parametrize("fault", EACH, ids=str)
def test_without_a_target_nothing_is_done(arena: FakeArena, brokers: Brokers, fault: Fault) -> None:
    with fault.hold(arena, []) as bite:
        assert not bite.bit
    assert brokers.calls == []
    assert all(broker.calls == [] for broker in arena.cluster.brokers)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [AddPartitions(), DeleteRecords(), ShortRetention()], ids=str)
def test_a_fault_without_effect_does_not_bite(arena: FakeArena, brokers: Brokers, fault: Fault) -> None:
    brokers.refusing, brokers.bounds = True, {0: (0, 400), 1: (0, 400)}
    with fault.hold(arena, [node(arena, 2)]) as bite:
        assert not bite.bit, bite.proof
    assert brokers.calls, "it was tried"


@pytest.mark.parametrize("fault", [TransferLeadership(), Reassign()], ids=str)
def test_a_refused_fault_does_not_bite_and_a_refused_undo_raises(
    arena: FakeArena, brokers: Brokers, fault: Fault
) -> None:
    brokers.refusing = True
    before = places(arena)
    holding = fault.hold(arena, [node(arena, 2)])
    bite = holding.__enter__()
    assert not bite.bit
    assert "cannot be moved: {0: 'not now'}" in bite.proof
    with pytest.raises(ClusterError, match="not now"):
        holding.__exit__(None, None, None)
    assert places(arena) == before


# --- leaders and replicas ---------------------------------------------------------------------------


def test_transfer_moves_only_partitions_that_the_target_leads(arena: FakeArena, brokers: Brokers) -> None:
    before = places(arena)
    with TransferLeadership().hold(arena, [node(arena, 2)]) as bite:
        assert bite.proof.startswith(
            "leader of orders-0 moved from broker-2 to broker-3, leader epoch 4 to 5"
        )
        assert bite.measured["leader_epoch_after"] == 5
        assert places(arena)[0] == ("broker-3", ("broker-3", "broker-1", "broker-2"))
        assert places(arena)[1] == before[1]
    # The old order of the replicas comes back too, and the old leader although it is not the preferred one.
    assert places(arena) == before


def test_transfer_needs_a_partition_and_another_replica(arena: FakeArena, brokers: Brokers) -> None:
    with TransferLeadership().hold(arena, [node(arena, 3)]) as bite:
        assert "leads no partition" in bite.proof
    with TransferLeadership().hold(arena, arena.cluster.brokers) as bite:
        assert "no other replica of orders-0 (and 1 more) is in sync" in bite.proof
    assert not bite.bit
    assert brokers.calls == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [TransferLeadership(), Reassign()], ids=str)
def test_healing_is_not_claimed_before_all_is_as_it_was(
    arena: FakeArena, brokers: Brokers, fault: Fault
) -> None:
    with fault.hold(arena, [node(arena, 2)]):
        healing = fault.healed(arena, [node(arena, 2)])
        assert not healing.healed
        assert "but had leader broker-2 of broker-1, broker-2, broker-3" in healing.proof
    assert fault.healed(arena, [node(arena, 2)]).healed


def test_reassign_shrinks_where_every_broker_has_a_replica(arena: FakeArena, brokers: Brokers) -> None:
    before = places(arena)
    with Reassign().hold(arena, [node(arena, 2)]) as bite:
        assert bite.way == "shrink"
        assert [replicas for _, replicas in places(arena)] == [("broker-1", "broker-3")] * 2
        assert (bite.measured["replicas_before"], bite.measured["replicas_after"]) == (3, 2)
    assert places(arena) == before


def test_reassign_swaps_where_a_broker_is_free(arena: FakeArena, brokers: Brokers) -> None:
    arena.cluster.replicas = {0: ("broker-2", "broker-1")}
    with Reassign().hold(arena, [node(arena, 2)]) as bite:
        assert bite.way == "swap"
        assert arena.cluster.replicas[0] == ("broker-3", "broker-1")
    assert arena.cluster.replicas[0] == ("broker-2", "broker-1")


def test_partitions_are_added_again_by_each_hold(arena: FakeArena, brokers: Brokers) -> None:
    for before in (2, 4):
        with AddPartitions(more=2).hold(arena, [node(arena, 1)]) as bite:
            assert bite.proof.startswith(f"{before} partitions became {before + 2}, all led after 0.")
    assert len(arena.cluster.replicas) == 6, "adding partitions cannot be undone"


# --- records ----------------------------------------------------------------------------------------


def test_deletion_reports_how_much_the_group_had_not_read(arena: FakeArena, brokers: Brokers) -> None:
    with DeleteRecords().hold(arena, [node(arena, 1)]) as bite:
        assert bite.proof.startswith("200 offsets of 2 partitions deleted, 0 beyond the group's committed")
    with DeleteRecords(share=1, beyond_group=True).hold(arena, [node(arena, 1)]) as bite:
        assert bite.measured["beyond_committed"] == sum(start - 200 for start, _ in brokers.bounds.values())
        assert bite.measured["beyond_committed"] > 0


@pytest.mark.usefixtures("impatient")
def test_deletion_needs_something_to_delete(arena: FakeArena, brokers: Brokers) -> None:
    brokers.committed = {}
    with DeleteRecords().hold(arena, [node(arena, 1)]) as bite:
        assert not bite.bit
        assert "orders-group has committed no offset above a log's start" in bite.proof


def test_retention_restores_the_settings_of_the_topic(arena: FakeArena, brokers: Brokers) -> None:
    brokers.overrides = {"retention.ms": "5000", "min.insync.replicas": "2"}
    fault = ShortRetention()
    with fault.hold(arena, [node(arena, 1)]) as bite:
        assert bite.bit, bite.proof
        assert brokers.overrides["retention.ms"] == "1"
        assert brokers.overrides["segment.ms"] == "200"
    assert brokers.overrides == {"retention.ms": "5000", "min.insync.replicas": "2"}
    assert fault.healed(arena, [node(arena, 1)]).healed


@pytest.mark.usefixtures("impatient")
def test_retention_that_brokers_do_not_check_does_not_bite(arena: FakeArena, brokers: Brokers) -> None:
    brokers.retention = False
    fault = ShortRetention()
    with fault.hold(arena, [node(arena, 1)]) as bite:
        assert not bite.bit
        assert "log.retention.check.interval.ms" in bite.proof
        healing = fault.healed(arena, [node(arena, 1)])
        assert not healing.healed
        assert "still has retention.ms=1, segment.ms=200" in healing.proof
    assert brokers.overrides == {}
