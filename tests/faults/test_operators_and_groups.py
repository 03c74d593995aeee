"""Faults of operators that leave a group behind: partitions it does not know, records and offsets that are gone."""
# ruff: noqa: F811  # fixtures of another file

from __future__ import annotations

import pytest

from faults.add_partitions import AddPartitions
from faults.delete_offsets import DeleteOffsets
from faults.short_retention import ShortRetention
from harness import registry
from harness.contracts import Fault
from harness.errors import UsageError
from harness.schedule import fault_of
from harness.testing.check_fault import check_fault
from tests.fake_arena import FakeArena
from tests.faults.operated import Brokers, node
from tests.faults.test_operators import arena, brokers, impatient  # noqa: F401


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (AddPartitions(written=3), "add_partitions"),
        (ShortRetention(beyond_group=True), "short_retention-beyond_group"),
        (DeleteOffsets(), "delete_offsets"),
    ],
    ids=str,
)
def test_passes_the_check_of_its_contract(
    arena: FakeArena, brokers: Brokers, fault: Fault, word: str
) -> None:
    assert str(fault) == word
    checked = check_fault(fault, arena, [node(arena, 2)])
    assert len(checked.bite.measured) > 1
    assert fault_of(fault.describe()) == fault
    with fault.hold(arena, []) as bite:
        assert not bite.bit, "without a target nothing bites"


def test_partitions_are_added_and_then_written_to(arena: FakeArena, brokers: Brokers) -> None:
    brokers.written = 50
    with AddPartitions(written=200).hold(arena, [node(arena, 1)]) as bite:
        assert bite.bit
        assert "; each new one has 200 records " in bite.proof
    assert brokers.bounds[2][1] >= 200
    with pytest.raises(UsageError, match="written=-1"):
        AddPartitions(written=-1)


@pytest.mark.usefixtures("impatient")
def test_partitions_without_records_do_not_bite(arena: FakeArena, brokers: Brokers) -> None:
    brokers.written = 0
    with AddPartitions(written=1).hold(arena, [node(arena, 1)]) as bite:
        assert not bite.bit
    assert "not all of the new partitions have 1 records" in bite.proof


@pytest.mark.usefixtures("impatient")
def test_retention_can_wait_for_records_that_the_group_has_not_read(
    arena: FakeArena, brokers: Brokers
) -> None:
    fault = ShortRetention(beyond_group=True)
    with fault.hold(arena, [node(arena, 1)]) as bite:
        assert bite.bit, bite.proof
        assert " of the offsets were beyond the group's committed ones" in bite.proof
        assert bite.measured["beyond_committed"] > 0
    brokers.committed = {0: 10**6, 1: 10**6}
    with fault.hold(arena, [node(arena, 1)]) as bite:
        assert not bite.bit
        assert "a log still starts where the group has committed" in bite.proof


def test_offsets_are_deleted_of_a_group_that_has_some(arena: FakeArena, brokers: Brokers) -> None:
    assert registry.load("fault", "delete_offsets")() == DeleteOffsets()
    with DeleteOffsets().hold(arena, [node(arena, 1)]) as bite:
        assert bite.proof.startswith("orders-group had committed offsets {0: 200, 1: 200}, none ")
    with DeleteOffsets().hold(arena, [node(arena, 1)]) as bite:
        assert (bite.bit, bite.proof) == (False, "orders-group has committed nothing")


@pytest.mark.usefixtures("impatient")
def test_offsets_of_a_group_with_members_are_not_deleted(arena: FakeArena, brokers: Brokers) -> None:
    brokers.members = True
    with DeleteOffsets().hold(arena, [node(arena, 1)]) as bite:
        assert not bite.bit
    assert "orders-group was not deleted in 0.3 s: orders: the cluster refused: " in bite.proof
