"""Curves as shapes: everything is inside the picture, higher values are higher up, and axes have readable ticks."""

from __future__ import annotations

import pytest

from reports.curve_drawing import BOTTOM, HIGH, LEFT, RIGHT, TOP, WIDE, drawn, nice_step, number


def curve(*points: tuple[float, float]) -> dict[str, object]:
    return {"x": "partitions", "y": "seconds", "points": [list(point) for point in points]}


def test_higher_values_are_higher_up_and_inside() -> None:
    marks = drawn(curve((0, 0.0), (5, 5.0), (10, 10.0)))["marks"]
    assert marks[0][1] > marks[1][1] > marks[2][1]
    assert all(LEFT <= x <= WIDE - RIGHT and TOP <= y <= HIGH - BOTTOM for x, y, _ in marks)
    assert [label for *_, label in marks] == ["0", "5", "10"]


def test_the_largest_value_is_below_the_highest_tick() -> None:
    shapes = drawn(curve((10, 3.2), (100, 4.9), (1000, 47.3)))
    assert [label for _, label in shapes["y_ticks"]] == ["0", "10", "20", "30", "40", "50"]
    assert min(y for _, y, _ in shapes["marks"]) >= min(top for top, _ in shapes["y_ticks"])


def test_orders_of_magnitude_have_equal_distances_and_small_ranges_are_linear() -> None:
    first, second, third = (left for left, _ in drawn(curve((10, 1), (100, 2), (1000, 3)))["x_ticks"])
    assert second - first == pytest.approx(third - second, abs=0.2)
    first, second, third = (left for left, _ in drawn(curve((0, 1), (20, 2), (100, 3)))["x_ticks"])
    assert (third - second) / (second - first) == pytest.approx(4.0, abs=0.02)


@pytest.mark.parametrize("points", [(), ((5.0, 0.0),), ((5.0, 3.0),)])
def test_few_points_and_only_zeros_can_be_drawn(points: tuple[tuple[float, float], ...]) -> None:
    assert len(drawn(curve(*points))["marks"]) == len(points)


@pytest.mark.parametrize(
    ("highest", "step"), [(0.0, 1.0), (1.0, 0.2), (3.0, 1.0), (47.3, 10.0), (900.0, 200.0)]
)
def test_steps_are_round(highest: float, step: float) -> None:
    assert nice_step(highest) == pytest.approx(step)


def test_numbers_have_three_digits_and_no_exponent() -> None:
    assert [number(value) for value in (0.0, 3.14159, 104.42, 12345.6)] == ["0", "3.14", "104", "12,346"]
