"""The matrix: modes as rows and faults as columns, transposed if there are many faults.

Controls are in a separate table, because VIOLATED is good news there. Runs of hazards are in the section about hazards. If runs differ in the version of brokers or clients,
each pair of versions has its own rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from reports import words
from reports.hazard_runs import belongs_to_hazard
from reports.headline import BAD_NEWS
from reports.model import VIOLATED, Report, RunReport, Standing

PLACE = 20  # sections are in the order of their places
Placed = tuple[int, RunReport]  # a run and its number on the page
Kind = tuple[str, str]  # delivery mode and, where runs differ in it, software
DOTS_IN_A_CELL = 120
MOST_COLUMNS = 6


@dataclass(frozen=True)
class Cell:
    """The runs of one mode under one fault: one in a quick report, many in a nightly one."""

    runs: tuple[Placed, ...]  # worst first
    standing: Standing

    @property
    def dots(self) -> tuple[Placed, ...]:
        return self.runs[:DOTS_IN_A_CELL]

    @property
    def sentence(self) -> str:
        """The verdicts in words: `12 runs: 11 HELD, 1 VIOLATED`."""
        verdicts = Counter(run.verdict for _, run in self.runs)
        counts = ", ".join(f"{words.number(count)} {verdict}" for verdict, count in verdicts.most_common())
        return f"{words.plural(len(self.runs), 'run')}: {counts}"

    def total(self, name: str) -> int:
        return sum(run.count(name) or 0 for _, run in self.runs)

    def forbidden(self, anomaly: str) -> bool:
        return any(run.forbids(anomaly) for _, run in self.runs)

    @property
    def unavailable_s_max(self) -> float | None:
        return max(
            (r.unavailable_s_max for _, r in self.runs if r.unavailable_s_max is not None), default=None
        )


def section(report: Report) -> dict[str, Any]:
    placed = [each for each in enumerate(report.runs, 1) if not belongs_to_hazard(each[1])]
    plain = report.night is None and report.comparison is None  # otherwise other sections have these runs
    promises = [(place, run) for place, run in placed if plain and not run.control]
    modes = _ordered((run.mode for _, run in promises), words.MODES)
    faults = _ordered((run.fault for _, run in promises), ("none",))
    several = len({run.software for _, run in promises}) > 1

    def kind(run: RunReport) -> Kind:
        return run.mode, run.software if several else ""

    softwares = dict.fromkeys(kind(run)[1] for _, run in promises)
    there = {kind(run) for _, run in promises}
    kinds = [(mode, software) for software in softwares for mode in modes if (mode, software) in there]

    def cell(wanted: Kind, fault: str) -> Cell | None:
        return _cell([p for p in promises if kind(p[1]) == wanted and p[1].fault == fault])

    turned = len(faults) > MOST_COLUMNS
    if turned:
        rows = [(words.fault(fault), [cell(each, fault) for each in kinds]) for fault in faults]
    else:
        rows = [(_label(each), [cell(each, fault) for fault in faults]) for each in kinds]
    controls = [(place, run) for place, run in placed if run.control]
    seeing = [p for p in controls if p[1].expected == VIOLATED]
    calm = [p for p in controls if p[1].expected != VIOLATED]
    return {
        "links": [
            *([("matrix", "Matrix")] if rows else []),
            *([("controls", "Controls")] if seeing or calm else []),
        ],
        "corner": "Fault" if turned else "Delivery mode",
        "columns": [_label(each) for each in kinds] if turned else [words.fault(fault) for fault in faults],
        "rows": rows,
        "seeing": seeing,
        "calm": calm,
    }


def _label(kind: Kind) -> str:
    mode, software = kind
    return f"{words.mode(mode)}, {software}" if software else words.mode(mode)


def _cell(runs: Sequence[Placed]) -> Cell | None:
    if not runs:
        return None
    worst_first = (*BAD_NEWS, Standing.AS_PROMISED)
    ordered = sorted(runs, key=lambda placed: worst_first.index(placed[1].standing))
    return Cell(tuple(ordered), ordered[0][1].standing)


def _ordered(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return known names in their order, then the others as they came."""
    found = list(dict.fromkeys(names))
    return [n for n in known if n in found] + [n for n in found if n not in known]
