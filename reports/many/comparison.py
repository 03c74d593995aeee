"""Two sets of runs in one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Run = TypeVar("Run")


@dataclass(frozen=True)
class Comparison:
    """The first `split` runs of a report belong to the first set, the others to the second; names are as the user gave them."""

    first: str
    second: str
    split: int

    def sides(self, runs: Sequence[Run]) -> tuple[Sequence[Run], Sequence[Run]]:
        return runs[: self.split], runs[self.split :]

    def set_of(self, place: int) -> str:
        """Return A or B for the number of a run on the page."""
        return "A" if place <= self.split else "B"
