"""Lines of a number over sessions as shapes for a small SVG, with a link at each point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDE, HIGH = 320, 96
LEFT, RIGHT, TOP, BOTTOM = 8, 8, 14, 20  # margins: the dates are in the lower one


@dataclass(frozen=True)
class Point:
    """One session: its value, where a click leads, and the words for both."""

    date: str
    value: float
    link: str
    text: str


@dataclass(frozen=True)
class Line:
    """A drawn line. `parts` are its unbroken pieces: a session without a value breaks it."""

    title: str
    last: str
    highest: str
    parts: tuple[str, ...]
    points: tuple[tuple[float, float, Point], ...]
    first_date: str
    last_date: str


def line(
    title: str, sessions: Sequence[tuple[str, float | None, str, str]], shown: Callable[[float], str]
) -> Line | None:
    """Return the line of sessions (date, value, link, label) that begins at 0; None if fewer than two have a value."""
    known = [value for _, value, _, _ in sessions if value is not None]
    if len(known) < 2:
        return None
    top = max(known) or 1.0
    step = (WIDE - LEFT - RIGHT) / (len(sessions) - 1)
    parts: list[list[str]] = [[]]
    points: list[tuple[float, float, Point]] = []
    for number, (date, value, link, label) in enumerate(sessions):
        if value is None:
            parts.append([])
            continue
        x = round(LEFT + number * step, 1)
        y = round(HIGH - BOTTOM - value / top * (HIGH - BOTTOM - TOP), 1)
        parts[-1].append(f"{x:g},{y:g}")
        points.append((x, y, Point(date, value, link, f"{date}: {shown(value)}, {label}")))
    return Line(
        title, shown(points[-1][2].value), shown(max(known)),
        tuple(" ".join(part) for part in parts if len(part) > 1), tuple(points),
        sessions[0][0], sessions[-1][0],
    )  # fmt: skip
