"""A rate: a count of runs in which something happened, and the interval in which the true rate lies. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

LEVEL = 0.95


@dataclass(frozen=True)
class Rate:
    """`found` of `runs`, with Wilson's score interval: its ends are shares from 0 to 1, also if nothing was found."""

    found: int
    runs: int
    level: float = LEVEL

    def __post_init__(self) -> None:
        if not 0 <= self.found <= self.runs:
            raise ValueError(f"Rate: found lies between 0 and runs, not {self.found} of {self.runs}")
        if not 0 < self.level < 1:
            raise ValueError(f"Rate: level lies between 0 and 1, not {self.level}")

    @property
    def share(self) -> float | None:
        """The observed rate; None without runs."""
        return self.found / self.runs if self.runs else None

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.found, self.runs, self.level)

    def as_data(self) -> dict[str, float | int | None]:
        low, high = self.interval
        return {"found": self.found, "runs": self.runs, "share": self.share, "low": low, "high": high,
                "level": self.level}  # fmt: skip

    def __str__(self) -> str:
        if not self.runs:
            return "0 of 0: nothing is known"
        low, high = self.interval
        return (
            f"{self.found} of {self.runs} ({self.found / self.runs:.1%}; "
            f"{self.level:.0%} interval {low:.1%} to {high:.1%})"
        )


def wilson(found: int, runs: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the ends of Wilson's two-sided score interval; (0, 1) without runs.

    It stays within 0 and 1 and is not empty at the ends: 0 of 20 gives 0 to 0.161, 20 of 20 gives 0.839 to 1.
    """
    if not runs:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, extra = found / runs, z * z / runs
    middle = share + extra / 2
    half = math.sqrt(extra * (share * (1 - share) + extra / 4))
    low, high = ((middle - half) / (1 + extra), (middle + half) / (1 + extra))
    # Exact at the ends, where rounding would leave 1e-17.
    return 0.0 if found == 0 else low, 1.0 if found == runs else high
