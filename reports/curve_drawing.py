"""Measured curves as shapes for an SVG: axes with their units, ticks, the line, and a label at each point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

WIDE, HIGH = 400.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 20.0, 30.0, 40.0  # margins: labels of the axes are in them
MANY_TIMES = 50.0  # from this ratio of the largest to the smallest x the axis is logarithmic


def drawn(curve: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shapes of a curve; y begins at 0, x is logarithmic if its values differ by orders of magnitude."""
    points = [(float(x), float(y)) for x, y in curve["points"]]
    step = nice_step(max((y for _, y in points), default=0.0))
    highest = step * max(1, math.ceil(max((y for _, y in points), default=0.0) / step - 1e-9))
    lefts = _lefts([x for x, _ in points])
    places = [(left, _top(y, highest)) for left, (_, y) in zip(lefts, points, strict=True)]
    ticks = [step * number for number in range(round(highest / step) + 1)]
    return {
        "x": curve["x"],
        "y": curve["y"],
        "line": " ".join(f"{x},{y}" for x, y in places),
        "marks": [(*place, number(y)) for place, (_, y) in zip(places, points, strict=True)],
        "x_ticks": [(left, number(x)) for left, (x, _) in zip(lefts, points, strict=True)],
        "y_ticks": [(_top(y, highest), number(y)) for y in ticks],
        "box": {"wide": WIDE, "high": HIGH, "left": LEFT, "right": WIDE - RIGHT, "bottom": HIGH - BOTTOM},
    }


def nice_step(highest: float) -> float:
    """Return 1, 2 or 5 times a power of ten, so that 2 to 5 steps reach the value."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest / 2))
    return next(power * factor for factor in (1, 2, 5, 10) if highest / (power * factor) <= 5)


def number(value: float) -> str:
    """Return the value with three digits, never with an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _lefts(values: Sequence[float]) -> list[float]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    many = low > 0 and high / low >= MANY_TIMES
    scaled = [math.log(value) if many else value for value in values]
    span = (max(scaled, default=0.0) - min(scaled, default=0.0)) or 1.0
    room = WIDE - LEFT - RIGHT - 20  # points keep a distance to the axis
    return [round(LEFT + 10 + (each - min(scaled)) / span * room, 1) for each in scaled]


def _top(y: float, highest: float) -> float:
    return round(HIGH - BOTTOM - y / highest * (HIGH - BOTTOM - TOP), 1)
