"""The rank test: known values, ties, strata, and values that cannot be compared."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from harness.statistics.rank_test import rank_test

# Mann and Whitney's U for unpaired samples with ties: Siegel and Castellan, Nonparametric Statistics, 1988, example 6.4.
ORAL_ABSENT = [13, 12, 12, 10, 10, 10, 10, 9, 8, 8, 7, 7, 7, 7, 7, 6]
ORAL_PRESENT = [17, 16, 15, 15, 15, 14, 14, 14, 13, 13, 13, 12, 12, 12, 12, 11, 11, 10, 10, 10, 8, 8, 6]


def test_a_published_example_with_ties() -> None:
    found = rank_test([(ORAL_ABSENT, ORAL_PRESENT)])
    assert found is not None
    assert found.p == pytest.approx(0.00055, abs=0.00005)  # z = 3.45
    assert found.higher == pytest.approx(304 / (16 * 23))  # U = 64 for the other side


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=20), st.lists(st.integers(0, 9), min_size=2, max_size=20)
)
def test_it_agrees_with_scipy(before: list[int], now: list[int]) -> None:
    found = rank_test([(before, now)])
    assert found is not None
    known = mannwhitneyu(now, before, method="asymptotic", use_continuity=False)
    assert found.higher == pytest.approx(known.statistic / (len(before) * len(now)))
    if len({*before, *now}) > 1:
        assert found.p == pytest.approx(known.pvalue)
    else:
        assert found.p == 1.0


def test_equal_values_do_not_differ() -> None:
    found = rank_test([([2.0] * 9, [2.0] * 9)])
    assert found is not None
    assert (found.p, found.higher) == (1.0, 0.5)


def test_another_mix_of_strata_is_no_difference() -> None:
    """Slow faults were rare before and are common now; each is as slow as it was."""
    chance = random.Random(5)
    quick, slow = [chance.gauss(2, 1) for _ in range(55)], [chance.gauss(60, 1) for _ in range(55)]
    before, now = (quick[:50], slow[:5]), (quick[50:], slow[5:])
    together = rank_test([([*before[0], *before[1]], [*now[0], *now[1]])])
    apart = rank_test([(before[0], now[0]), (before[1], now[1])])
    assert together is not None
    assert apart is not None
    assert together.p < 1e-6
    assert apart.p > 0.1


def test_strata_add_up() -> None:
    """Each is too small to show what all together show."""
    strata = [([1.0, 2.0, 3.0], [4.0]) for _ in range(12)]
    alone, together = rank_test(strata[:1]), rank_test(strata)
    assert alone is not None
    assert together is not None
    assert together.p < 0.001 < 0.1 < alone.p
    assert together.higher == 1.0


def test_without_values_on_both_sides_nothing_is_compared() -> None:
    assert rank_test([]) is None
    assert rank_test([([], [1.0]), ([1.0], [])]) is None
