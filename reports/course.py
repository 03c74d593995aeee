"""The course of a command besides its runs: planned runs, skipped scenarios with reasons, and an early end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reports.words import plural

COMPLETE, INTERRUPTED, FAILED = "complete", "interrupted", "failed"


@dataclass(frozen=True)
class Course:
    """The course of a command; `planned` counts the runs that were to be executed, without the skipped ones."""

    planned: int
    skipped: Mapping[str, str] = field(default_factory=dict)  # by scenario: why
    ended: str = COMPLETE
    errors: tuple[str, ...] = ()  # each one line
    seconds: Mapping[str, float] = field(default_factory=dict)  # that each run took, by scenario

    def as_data(self) -> dict[str, Any]:
        return {
            "planned": self.planned,
            "skipped": [{"scenario": name, "reason": why} for name, why in self.skipped.items()],
            "ended": self.ended,
            "errors": list(self.errors),
        }

    def lines(self, runs: int) -> list[str]:
        """Return the lines below a table of so many runs; none if everything went as planned."""
        lines = [f"skipped {name}: {why}" for name, why in self.skipped.items()]
        lines += [f"error: {text}" for text in self.errors]
        if self.ended != COMPLETE:
            how = "interrupted" if self.ended == INTERRUPTED else "ended by an error"
            lines.append(f"{how} after {runs} of {plural(self.planned, 'run')}; {runs} in the report")
        return lines
