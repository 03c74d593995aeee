"""Each cell of the mode table, written down once more by hand."""

from __future__ import annotations

import pytest

from harness import registry
from harness.contracts import Mode
from harness.guarantees import TABLE, Cell, Conditions, Rule, Unless, promise

F, C, N = Rule.FORBIDDEN, Rule.COUNTED, Rule.NOT_ASKED
MODES = [Mode.AT_MOST_ONCE, Mode.AT_LEAST_ONCE, Mode.IDEMPOTENT, Mode.EXACTLY_ONCE]

EXPECTED = {
    "lost": (C, F, F, F), "undelivered": (C, F, F, F), "missing_effect": (C, F, F, F),
    "duplicated": (F, C, F, F),
    "redelivered": (F, C, C, C),
    "reordered": (C, C, F, F),
    "skipped": (C, F, F, F), "rewound": (F, F, F, F),
    "overcommitted": (C, F, F, F), "two_owners": (F, F, F, F),
    "aborted_read": (N, N, N, F), "premature_read": (N, N, N, F), "torn": (N, N, N, F), "read_cycle": (N, N, N, F),
    "double_effect": (N, N, N, F),
    "phantom": (F, F, F, F), "corrupted": (F, F, F, F), "misplaced": (F, F, F, F), "offset_conflict": (F, F, F, F),
    "key_reordered": (C, C, F, F),
    "expired": (C, C, C, C), "late": (C, C, C, C), "interleaved": (C, C, C, C), "write_cycle": (C, C, C, C),
    "unseen": (C, C, C, C), "stalled": (N, N, N, N),
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("anomaly", TABLE)
def test_each_cell(anomaly: str, mode: Mode) -> None:
    assert promise(anomaly, mode, Conditions()).rule is EXPECTED[anomaly][MODES.index(mode)]


def test_one_request_in_flight_forbids_reordering_at_least_once() -> None:
    assert promise("reordered", Mode.AT_LEAST_ONCE, Conditions(in_flight=1)).rule is F
    assert promise("reordered", Mode.AT_LEAST_ONCE, Conditions(in_flight=5)).rule is C
    assert promise("reordered", Mode.AT_MOST_ONCE, Conditions(in_flight=1)).rule is C


@pytest.mark.parametrize("mode", [Mode.IDEMPOTENT, Mode.EXACTLY_ONCE])
def test_key_order_is_promised_while_partitions_stay(mode: Mode) -> None:
    assert promise("key_reordered", mode, Conditions(topic_unchanged=True)).rule is F
    assert promise("key_reordered", mode, Conditions(topic_unchanged=False)).rule is C


def test_a_reader_that_chose_read_uncommitted_is_excused() -> None:
    for anomaly in ("aborted_read", "premature_read"):
        assert set(promise(anomaly, Mode.EXACTLY_ONCE, Conditions()).excuses) == {"read_uncommitted"}


def test_a_rebalance_excuses_going_back() -> None:
    for mode in MODES[1:]:
        assert set(promise("rewound", mode, Conditions()).excuses) == {"rebalance"}
    assert promise("rewound", Mode.AT_MOST_ONCE, Conditions()).excuses == {}


def test_a_share_group_has_no_positions_but_still_delivers() -> None:
    shared = Conditions(share_group=True)
    for anomaly in ("skipped", "rewound", "two_owners", "overcommitted", "key_reordered", "redelivered"):
        assert promise(anomaly, Mode.AT_LEAST_ONCE, shared).rule is C
    for anomaly in ("lost", "undelivered", "phantom", "corrupted"):
        assert promise(anomaly, Mode.AT_LEAST_ONCE, shared).rule is F


def test_every_cell_has_its_reason() -> None:
    for row in TABLE.values():
        assert list(row) == MODES
        for cell in row.values():
            parts = [cell] if isinstance(cell, Cell) else [cell.normally, cell.then]
            assert all(len(part.reason) > 10 for part in parts)
            assert isinstance(cell, Cell | Unless)


def test_every_finder_has_a_row() -> None:
    assert set(registry.names("finder")) <= set(TABLE)
