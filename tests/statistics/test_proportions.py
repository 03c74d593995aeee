"""Fisher's exact test and the correction for many comparisons: known values and bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from harness.statistics.comparisons import adjusted
from harness.statistics.proportions import proportion_test
from harness.statistics.rates import Rate


@pytest.mark.parametrize(
    ("before", "now", "p"),
    [
        (Rate(3, 4), Rate(1, 4), 0.4857),  # Fisher's lady tasting tea, both sides
        (Rate(1, 10), Rate(11, 14), 0.0028),
        (Rate(0, 40), Rate(1, 3), 0.0698),
        (Rate(0, 40), Rate(3, 3), 0.0001),
    ],
)
def test_known_values(before: Rate, now: Rate, p: float) -> None:
    assert proportion_test(before, now) == pytest.approx(p, abs=0.00005)
    assert proportion_test(now, before) == proportion_test(before, now)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_it_agrees_with_scipy(found: int, others: int, now: int, now_others: int) -> None:
    p = proportion_test(Rate(found, found + others), Rate(now, now + now_others))
    assert p == pytest.approx(fisher_exact([[found, others], [now, now_others]]).pvalue)


def test_without_runs_nothing_differs() -> None:
    assert proportion_test(Rate(0, 0), Rate(5, 5)) == 1.0


def test_corrected_values_of_the_paper() -> None:
    """Benjamini and Hochberg 1995, section 4.1: at 5 % the first four of these fifteen are found."""
    values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
              0.7590, 1.000]  # fmt: skip
    found = adjusted(values)
    assert [each < 0.05 for each in found] == [True] * 4 + [False] * 11
    assert found[0] == pytest.approx(0.0015)
    assert adjusted(values[::-1]) == found[::-1]


@given(st.lists(st.floats(0, 1), max_size=30))
def test_a_correction_never_lowers_and_keeps_the_order(values: list[float]) -> None:
    found = adjusted(values)
    assert all(value <= corrected <= 1 for value, corrected in zip(values, found, strict=True))
    ordered = [corrected for _, corrected in sorted(zip(values, found, strict=True))]
    assert ordered == sorted(ordered)
