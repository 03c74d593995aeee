"""Modes as rows, faults as columns; controls in a table of their own, because there VIOLATED is good news."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from reports import words
from reports.headline import worst
from reports.model import VIOLATED, Report, RunReport, Standing

Placed = tuple[int, RunReport]  # a run and its number on the page
SHOWN_IN_A_CELL = 3
_WORST_FIRST = (Standing.BROKEN, Standing.MISSED, Standing.UNPROVEN, Standing.AS_PROMISED)


@dataclass(frozen=True)
class Cell:
    """The runs of one mode under one fault; a nightly report has many of them in a cell."""

    shown: tuple[Placed, ...]
    more: int
    sentence: str  # of all runs in the cell, "" for a single one
    standing: Standing


def section(report: Report) -> dict[str, Any]:
    placed = list(enumerate(report.runs, 1))
    promises = [(place, run) for place, run in placed if not run.control]
    modes = _ordered((run.mode for _, run in promises), words.MODES)
    faults = _ordered((run.fault for _, run in promises), ("none",))
    rows = [
        (
            mode,
            [_cell([p for p in promises if p[1].mode == mode and p[1].fault == fault]) for fault in faults],
        )
        for mode in modes
    ]
    controls = [(place, run) for place, run in placed if run.control]
    return {
        "faults": faults,
        "rows": rows,
        "seeing": [p for p in controls if p[1].expected == VIOLATED],
        "calm": [p for p in controls if p[1].expected != VIOLATED],
    }


def _cell(runs: Sequence[Placed]) -> Cell | None:
    if not runs:
        return None
    ordered = sorted(runs, key=lambda p: _WORST_FIRST.index(p[1].standing))
    sentence = ""
    if len(runs) > 1:
        verdicts = [run.verdict for _, run in runs]
        told = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        sentence = f"{len(runs)} runs: {told}"
    shown = tuple(ordered[:SHOWN_IN_A_CELL])
    return Cell(shown, len(runs) - len(shown), sentence, worst([run for _, run in runs]))


def _ordered(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Known names in their order, then the others as they came."""
    found = list(dict.fromkeys(names))
    return [n for n in known if n in found] + [n for n in found if n not in known]
