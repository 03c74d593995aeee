"""Faults of operators: what they choose to move, delete or refuse, without any brokers."""

from __future__ import annotations

import pytest

from faults.add_partitions import AddPartitions
from faults.delete_records import DeleteRecords
from faults.reassign import moved
from faults.short_retention import ShortRetention
from faults.unclean_election import UncleanElection
from harness.contracts import PartitionState
from harness.errors import UsageError


def state(number: int, *replicas: str) -> PartitionState:
    return PartitionState("orders", number, replicas[0], 0, replicas, replicas)


@pytest.mark.parametrize(
    ("replicas", "targets", "brokers", "wanted"),
    [
        ("abc", "b", "abc", "ac"),
        ("abc", "b", "abcd", "adc"),
        ("abc", "ab", "abcd", "dc"),
        ("a", "a", "ab", "b"),
        ("ab", "ab", "ab", None),
    ],
)
def test_targets_are_replaced_by_spare_brokers_or_removed(
    replicas: str, targets: str, brokers: str, wanted: str | None
) -> None:
    found = moved([state(0, *replicas)], frozenset(targets), list(brokers))
    assert found == ({0: tuple(wanted)} if wanted else {})


def test_spare_brokers_take_turns() -> None:
    found = moved([state(0, "a"), state(1, "a"), state(2, "a")], frozenset("a"), list("abc"))
    assert found == {0: ("b",), 1: ("c",), 2: ("b",)}


@pytest.mark.parametrize(
    ("fault", "bounds", "committed", "below"),
    [
        (DeleteRecords(), (0, 100), 80, 40),
        (DeleteRecords(share=1), (0, 100), 80, 80),
        (DeleteRecords(), (60, 100), 80, 70),
        (DeleteRecords(), (90, 100), 80, None),
        (DeleteRecords(), (0, 100), None, None),
        (DeleteRecords(beyond_group=True), (0, 100), 80, 90),
        (DeleteRecords(beyond_group=True), (0, 100), None, 50),
        (DeleteRecords(beyond_group=True), (0, 100), 100, None),
        (DeleteRecords(share=0.1), (0, 5), 1, 1),
    ],
)
def test_records_are_deleted_up_to_the_share(
    fault: DeleteRecords, bounds: tuple[int, int], committed: int | None, below: int | None
) -> None:
    found = fault.below({0: bounds}, {} if committed is None else {0: committed})
    assert found == ({} if below is None else {0: below})


def test_bad_settings_are_named() -> None:
    for wrong, match in (
        (lambda: AddPartitions(more=0), "more=0"),
        (lambda: DeleteRecords(share=0), "share=0"),
        (lambda: DeleteRecords(share=1.5), r"share=1\.5"),
        (lambda: ShortRetention(retention_ms=0), "retention_ms=0"),
        (lambda: UncleanElection(records=0), "records=0"),
    ):
        with pytest.raises(UsageError, match=match):
            wrong()
