"""Owners of partitions over time: which of them testify that two members owned one at once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from harness.reconcile.screen.partition_owners import SharedPartition, ownership
from harness.reconcile.seal import event_rows
from harness.reconcile.seal.schema import SCHEMAS


def assignments(*steps: tuple[int, int, str, list[int]]) -> pa.Table:
    """Make the table from rows of t, reader, how, partitions."""
    made = [
        {"run": 1, "t": t, "reader": reader, "how": how, "topic": 0, "partitions": partitions}
        for t, reader, how, partitions in steps
    ]
    return pa.Table.from_pylist(made, schema=SCHEMAS["assignments"])


def test_a_member_that_revokes_too_late_shared_the_partition() -> None:
    found = ownership(
        assignments(
            (1, 0, "assigned", [0, 1]),
            (2, 1, "assigned", [1]),
            (5, 0, "revoked", [0, 1]),
            (9, 1, "revoked", [1]),
        )
    )
    assert found[1].assigned == 3
    assert found[1].shared == (SharedPartition(1, 1, 0, 1, 2, 5),)


@pytest.mark.parametrize(
    "steps",
    [
        ((1, 0, "assigned", [0]), (2, 0, "revoked", [0]), (3, 1, "assigned", [0]), (9, 1, "revoked", [0])),
        ((1, 0, "assigned", [0]), (2, 1, "assigned", [0]), (3, 0, "lost", [0])),
        ((1, 0, "assigned", [0]), (2, 1, "assigned", [0]), (3, 1, "revoked", [0])),  # 0 died
        ((1, 0, "assigned", [0]), (2, 1, "assigned", [0]), (3, 0, "revoked", [0]), (4, 1, "lost", [0])),
        ((1, 0, "assigned", [0]), (2, 1, "assigned", [0]), (3, 0, "revoked", [0])),  # 1 died
        (
            (1, 0, "assigned", [0]),
            (2, 1, "assigned_late", [0]),
            (3, 0, "revoked", [0]),
            (4, 1, "revoked", [0]),
        ),
        ((1, 0, "assigned", [0]), (2, 0, "rewound", [0]), (3, 0, "revoked", [0])),
    ],
)
def test_handing_over_losing_and_dying_are_not_sharing(
    steps: tuple[tuple[int, int, str, list[int]], ...],
) -> None:
    assert ownership(assignments(*steps))[1].shared == ()


def test_a_late_revocation_counts_as_lost() -> None:
    event = {"t": 5, "how": "revoked", "partitions": [1], "late": True}
    assert event_rows.assignment(event, 0)["how"] == "lost"
    assert event_rows.assignment({**event, "late": False}, 0)["how"] == "revoked"
    given = {**event, "how": "assigned"}
    assert event_rows.assignment(given, 0)["how"] == "assigned_late", "it may no longer count"
    assert event_rows.assignment({**given, "late": False}, 0)["how"] == "assigned"
