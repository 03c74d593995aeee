"""Summaries of blocks: their order, and how wide the buckets of a long run are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.reconcile.screen.facts import BUCKET_NS, MOST_BUCKETS, bucket_ns
from harness.reconcile.screen.spaces import COLUMNS, Space, named
from harness.reconcile.screen.summaries import SUMMARY, _in_order, folded

number = st.one_of(st.integers(-5, 5), st.integers(-(1 << 40), 1 << 40))
HOUR_NS = 3_600_000_000_000


@settings(deadline=None)
@given(st.lists(st.tuples(number, number), min_size=1, max_size=50))
def test_rows_come_in_the_order_of_both_columns(pairs: list[tuple[int, int]]) -> None:
    """Rows are sorted by counting where all numbers are near each other, else by comparing."""
    a, b = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    order = _in_order(a, b)
    found = pairs if order is None else [pairs[i] for i in order.tolist()]
    assert found == sorted(pairs)
    if order is not None:
        assert order.tolist() == np.lexsort((b, a)).tolist(), "rows of one key stay in their order"


@settings(deadline=None)
@given(st.lists(st.tuples(number, number, st.integers(0, 9)), min_size=1, max_size=50))
def test_rows_of_one_key_are_added_up(rows: list[tuple[int, int, int]]) -> None:
    a, b, n = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    found = named(Space.BUCKET, folded(1, Space.BUCKET, a, b, rows=n, longest_ns=n))
    expected = {key: [row[2] for row in rows if row[:2] == key] for key in {row[:2] for row in rows}}
    keys_and_sums = zip(
        *(found[name].tolist() for name in ("bucket", "bin", "rows", "longest_ns")), strict=True
    )
    assert {(a, b): (total, highest) for a, b, total, highest in keys_and_sums} == {
        key: (sum(values), max(values)) for key, values in expected.items()
    }


def test_every_space_names_stored_columns_once() -> None:
    for space in Space:
        stored = list(COLUMNS[space].values())
        assert set(stored) <= set(SUMMARY)
        assert len(stored) == len(set(stored)), space


@pytest.mark.parametrize("hours", [0, 1, 2, 8, 30, 1000])
def test_a_long_run_has_wide_buckets(hours: int) -> None:
    width = bucket_ns(hours * HOUR_NS)
    assert hours * HOUR_NS <= width * MOST_BUCKETS
    assert width == BUCKET_NS or hours * HOUR_NS > width // 2 * MOST_BUCKETS, "no wider than needed"
