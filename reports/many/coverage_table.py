"""Which faults took effect in which mode, and on which target, over the runs of a night; and what stayed empty."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.trends.row import NO_FAULT
from reports import words
from reports.headline import worst
from reports.many.exercised import blows
from reports.many.night import Cell
from reports.model import INCONCLUSIVE, RunReport, Standing

MODE, TARGET = "mode", "target"


@dataclass(frozen=True)
class CoverageCell:
    """The runs of one fault with one mode or target. `possible`: a night can draw this pair."""

    fault: str
    value: str
    exercised: int
    bit: int
    standing: Standing | None  # of the worst run; None without a run
    possible: bool
    before: int  # runs of earlier nights in which it took effect

    @property
    def kind(self) -> str:
        """Return how the cell is to be read: covered, no effect, gap or never drawn; a violation outweighs all."""
        if self.standing is Standing.BROKEN:
            return "violated"
        if self.bit:
            return "covered"
        if self.exercised:
            return "no effect"
        return "gap" if self.possible else "never"

    @property
    def sentence(self) -> str:
        earlier = f"; in {words.plural(self.before, 'run')} of earlier nights" if self.before else ""
        if self.exercised:
            effect = "took effect" if self.fault != NO_FAULT else "proved something"
            bad = f"; {self.standing}" if self.kind == "violated" else ""
            return f"{effect} in {self.bit} of {words.plural(self.exercised, 'run')}{bad}{earlier}"
        if self.possible:
            return f"not run this night{earlier or ', nor in a night before'}"
        return "not drawn: not a promise of this mode, or not possible"


@dataclass(frozen=True)
class CoverageTable:
    """Rows of one dimension, and a column for each fault."""

    faults: tuple[str, ...]
    rows: tuple[tuple[str, tuple[CoverageCell, ...]], ...]

    @property
    def cells(self) -> Iterator[CoverageCell]:
        return (cell for _, cells in self.rows for cell in cells)

    @property
    def possible(self) -> int:
        """The pairs that a night can have, and those that this one has had."""
        return sum(cell.possible or cell.exercised > 0 for cell in self.cells)

    @property
    def covered(self) -> int:
        return sum(cell.bit > 0 for cell in self.cells)

    @property
    def gaps(self) -> list[CoverageCell]:
        """The possible pairs of which no run took effect; those that no earlier night has covered either come first."""
        empty = [cell for cell in self.cells if not cell.bit and (cell.possible or cell.exercised)]
        return sorted(empty, key=lambda cell: cell.before)


def coverage_table(
    runs: Sequence[RunReport],
    dimension: str,
    possible: Collection[Cell],
    covered: Mapping[Cell, int],
) -> CoverageTable:
    """Return the table of a dimension, which is `mode` or `target`; `covered` counts runs of all nights, this one included."""
    members: dict[tuple[str, str], list[tuple[RunReport, bool]]] = defaultdict(list)
    for run in runs:
        for key, bit in _pairs(run, dimension).items():
            members[key].append((run, bit))
    asked = {(fault, value) for fault, name, value in possible if name == dimension}
    keys = {*members, *asked}
    faults = sorted({fault for fault, _ in keys}, key=lambda fault: (fault == NO_FAULT, fault))
    values = {value for _, value in keys}
    modes = [mode for mode in words.MODES if mode in values]

    def cell(fault: str, value: str) -> CoverageCell:
        found = members[fault, value]
        bit = sum(each for _, each in found)
        return CoverageCell(
            fault, value, len(found), bit, worst([run for run, _ in found]) if found else None,
            (fault, value) in asked, max(0, covered.get((fault, dimension, value), 0) - bit),
        )  # fmt: skip

    ordered = [*modes, *sorted(values - set(modes))]
    return CoverageTable(
        tuple(faults), tuple((value, tuple(cell(fault, value) for fault in faults)) for value in ordered)
    )


def _pairs(run: RunReport, dimension: str) -> dict[tuple[str, str], bool]:
    """Return each pair of the run, and whether one of its windows took effect; a run without faults has effect if it proves something."""
    found: dict[tuple[str, str], bool] = {}
    for blow in blows(run):
        key = (blow.fault, run.mode if dimension == MODE else blow.target)
        found[key] = found.get(key, False) or blow.bit
    if not found and dimension == MODE:
        found[NO_FAULT, run.mode] = run.verdict != INCONCLUSIVE
    return found
