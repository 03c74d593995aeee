"""Wilson's interval: published values, the ends, and bad numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.statistics.rates import Rate, wilson


@pytest.mark.parametrize(
    ("found", "runs", "low", "high"),
    [  # Newcombe 1998, table I, method 3: 95 %
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_intervals(found: int, runs: int, low: float, high: float) -> None:
    assert wilson(found, runs) == pytest.approx((low, high), abs=0.00005)


def test_a_higher_level_gives_a_wider_interval() -> None:
    assert wilson(0, 20, 0.99)[1] > wilson(0, 20, 0.95)[1] > wilson(0, 20, 0.5)[1]


@given(st.integers(0, 500), st.integers(0, 500))
def test_the_interval_has_the_observed_rate_and_mirrors(found: int, more: int) -> None:
    runs = found + more
    low, high = wilson(found, runs)
    assert 0 <= low < high <= 1
    if runs:
        assert low <= found / runs <= high
    assert wilson(more, runs) == pytest.approx((1 - high, 1 - low))


def test_without_runs_nothing_is_known() -> None:
    rate = Rate(0, 0)
    assert rate.share is None
    assert rate.interval == (0.0, 1.0)
    assert "nothing is known" in str(rate)


def test_the_text_names_count_share_and_interval() -> None:
    assert str(Rate(0, 20)) == "0 of 20 (0.0%; 95% interval 0.0% to 16.1%)"
    assert Rate(3, 4).as_data()["share"] == 0.75


@pytest.mark.parametrize("wrong", [(-1, 3, 0.95), (4, 3, 0.95), (1, 3, 1.0)])
def test_impossible_numbers_are_refused(wrong: tuple[int, int, float]) -> None:
    with pytest.raises(ValueError, match="Rate:"):
        Rate(*wrong)
