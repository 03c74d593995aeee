"""Fisher's exact test: do two rates differ beyond noise? Pure."""

from __future__ import annotations

from fractions import Fraction
from math import comb

from harness.statistics.rates import Rate


def proportion_test(before: Rate, now: Rate) -> float:
    """Return the two-sided p value of Fisher's exact test: the chance of a table at most as likely as this one.

    It is exact for any number of runs. A night has few runs of each fault, where a test by the normal approximation is wrong.
    """
    runs, found = before.runs + now.runs, before.found + now.found
    least, most = max(0, found - before.runs), min(found, now.runs)
    ways = [comb(now.runs, k) * comb(before.runs, found - k) for k in range(least, most + 1)]
    seen = ways[now.found - least]
    return float(Fraction(sum(each for each in ways if each <= seen), comb(runs, found)))
