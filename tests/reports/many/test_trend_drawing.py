"""A line of a trend begins at 0, names its sessions, and is broken where nothing was measured."""

from __future__ import annotations

from reports.many.trend_drawing import BOTTOM, HIGH, LEFT, RIGHT, TOP, WIDE, line
from reports.words import seconds


def test_points_are_in_order_and_the_highest_one_is_at_the_top() -> None:
    drawn = line("t", [("a", 0.0, "#1", "3 runs"), ("b", 2.0, "", ""), ("c", 4.0, "", "")], seconds)
    assert drawn is not None
    assert [(x, y) for x, y, _ in drawn.points] == [
        (LEFT, HIGH - BOTTOM),
        (WIDE / 2, (TOP + HIGH - BOTTOM) / 2),
        (WIDE - RIGHT, TOP),
    ]
    assert len(drawn.parts) == 1
    assert (drawn.last, drawn.highest, drawn.first_date, drawn.last_date) == ("4.0 s", "4.0 s", "a", "c")
    assert drawn.points[0][2].text == "a: 0.0 s, 3 runs"


def test_a_session_without_a_value_breaks_the_line() -> None:
    sessions = [(str(n), value, "", "") for n, value in enumerate((1.0, 1.0, None, 2.0, 2.0, None, 1.0))]
    drawn = line("t", sessions, seconds)
    assert drawn is not None
    assert [len(part.split()) for part in drawn.parts] == [2, 2]
    assert len(drawn.points) == 5, "a single point is shown, too"


def test_one_value_is_no_line() -> None:
    assert line("t", [("a", 1.0, "", ""), ("b", None, "", "")], seconds) is None
    assert line("t", [], seconds) is None


def test_zeros_are_a_line_at_the_bottom() -> None:
    drawn = line("t", [("a", 0.0, "", ""), ("b", 0.0, "", "")], seconds)
    assert drawn is not None
    assert {y for _, y, _ in drawn.points} == {HIGH - BOTTOM}
