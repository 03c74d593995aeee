"""Each fault over all runs: windows that took effect, the longest time without acks, and the time to recover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from reports.model import Report, RunReport, Window

PLACE = 30  # sections are in the order of their places


@dataclass(frozen=True)
class Row:
    """The windows of one fault, whatever the target."""

    fault: str
    windows: tuple[tuple[RunReport, Window], ...]

    @property
    def bit(self) -> int:
        return sum(window.bit for _, window in self.windows)

    @property
    def healed(self) -> int:
        return sum(window.healed for _, window in self.windows)

    @property
    def ways(self) -> str:
        return ", ".join(dict.fromkeys(window.way for _, window in self.windows if window.way))

    @property
    def targets(self) -> str:
        return ", ".join(dict.fromkeys(window.target for _, window in self.windows if window.target))

    @property
    def unavailable_s_max(self) -> float | None:
        """The longest time without acks in runs with this fault only; in others another fault may be the cause."""
        alone = [run.unavailable_s_max for run, _ in self.windows if len({w.fault for w in run.windows}) == 1]
        return max((s for s in alone if s is not None), default=None)

    @property
    def recovered_s(self) -> float | None:
        """The median time to recover over its windows."""
        known = [window.recovered_s for _, window in self.windows if window.recovered_s is not None]
        return median(known) if known else None

    @property
    def recovered_s_max(self) -> float | None:
        return max((w.recovered_s for _, w in self.windows if w.recovered_s is not None), default=None)


def section(report: Report) -> dict[str, Any]:
    windows = [(run, window) for run in report.runs for window in run.windows]
    rows = [_row(fault, windows) for fault in sorted({window.fault for _, window in windows})]
    return {"links": [("faults", "Faults")] if rows else [], "rows": rows}


def _row(fault: str, windows: Sequence[tuple[RunReport, Window]]) -> Row:
    return Row(fault, tuple((run, window) for run, window in windows if window.fault == fault))
