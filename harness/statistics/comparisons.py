"""Correction of p values for the number of comparisons: Benjamini and Hochberg. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Return the p values, corrected: of all that are then below a level, at most that share is expected to be chance.

    If nothing changed at all, the chance of any value below the level is the level. Where something did change, this finds
    more of it than a correction by Holm, which bounds the chance of a single wrong line: of dozens of comparisons Holm
    would keep only the strongest.
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place], reverse=True)
    found, least = [1.0] * len(p_values), 1.0
    for rank, place in zip(range(len(p_values), 0, -1), order, strict=True):
        least = min(least, p_values[place] * (len(p_values) / rank))
        found[place] = least
    return found
