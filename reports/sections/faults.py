"""Each fault over all runs: whether it took effect, how long nothing was acknowledged, how soon all partitions were again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from reports.model import Report, RunReport, Window


@dataclass(frozen=True)
class Row:
    """The windows of one fault, whatever the target."""

    fault: str
    held: tuple[tuple[RunReport, Window], ...]

    @property
    def bit(self) -> int:
        return sum(window.bit for _, window in self.held)

    @property
    def healed(self) -> int:
        return sum(window.healed for _, window in self.held)

    @property
    def ways(self) -> str:
        return ", ".join(dict.fromkeys(window.way for _, window in self.held if window.way))

    @property
    def targets(self) -> str:
        return ", ".join(dict.fromkeys(window.target for _, window in self.held if window.target))

    @property
    def unavailable_s_max(self) -> float | None:
        """Of runs with this fault alone: else nobody could say whose it was."""
        alone = [run.unavailable_s_max for run, _ in self.held if len({w.fault for w in run.windows}) == 1]
        return max((s for s in alone if s is not None), default=None)

    @property
    def recovered_s(self) -> float | None:
        """The median over its windows."""
        known = [window.recovered_s for _, window in self.held if window.recovered_s is not None]
        return median(known) if known else None

    @property
    def recovered_s_max(self) -> float | None:
        return max((w.recovered_s for _, w in self.held if w.recovered_s is not None), default=None)


def section(report: Report) -> dict[str, Any]:
    held = [(run, window) for run in report.runs for window in run.windows]
    return {"rows": [_row(fault, held) for fault in sorted({window.fault for _, window in held})]}


def _row(fault: str, held: Sequence[tuple[RunReport, Window]]) -> Row:
    return Row(fault, tuple((run, window) for run, window in held if window.fault == fault))
