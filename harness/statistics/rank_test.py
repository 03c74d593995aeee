"""The Mann-Whitney U test with strata: are values higher or lower than others beyond noise, by their ranks? Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Values before, and values now: only these are compared with each other.
Stratum = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class RankTest:
    """`higher`: the share of pairs of one value now and one before in which the one now is higher; ties count half.

    Strata have the same weights in it as in the test.
    """

    p: float
    higher: float


def rank_test(strata: Iterable[Stratum]) -> RankTest | None:
    """Compare two sets of values within each stratum; None if no stratum has values on both sides.

    With one stratum this is the two-sided test of Mann and Whitney, with the correction for ties, by the normal approximation
    without continuity correction. Several strata are combined as van Elteren does, with weights of 1 / (N + 1). So a night of
    slow faults is not slower than a night of quick ones: each fault is compared with itself.
    """
    both = [(before, now) for before, now in strata if before and now]
    if not both:
        return None
    found, pairs, variance = 0.0, 0.0, 0.0
    for before, now in both:
        u, n, m = _wins(before, now), len(before), len(now)
        total = n + m
        ties = sum(times**3 - times for times in Counter([*before, *now]).values())
        weight = 1 / (total + 1)
        variance += weight**2 * n * m / 12 * (total + 1 - ties / (total * (total - 1)))
        found, pairs = found + weight * u, pairs + weight * n * m
    p = math.erfc(abs(found - pairs / 2) / math.sqrt(2 * variance)) if variance > 0 else 1.0
    return RankTest(p, found / pairs)


def _wins(before: Sequence[float], now: Sequence[float]) -> float:
    """Return U: the number of pairs in which the value now is higher, ties counted half."""
    ranks, place = {}, 0
    for value, times in Counter(
        sorted([*before, *now])
    ).items():  # in ascending order; equal values share the mean of their ranks
        ranks[value] = place + (times + 1) / 2
        place += times
    return sum(ranks[value] for value in now) - len(now) * (len(now) + 1) / 2
