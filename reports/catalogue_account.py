"""The account of `catalogue`: which hazards were caught and which safe ways held, as data, as a table and in sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.runtime import exits
from harness.runtime.terminal import printable
from reports import summary, words
from reports.hazard_runs import HazardRuns, found, required
from reports.headline import MARKS, TONES
from reports.summary import Account, aligned, coloured

if TYPE_CHECKING:
    from harness.scenario import Scenario
    from reports.course import Course
    from reports.model import RunReport
    from suites.scenarios.hazards import Hazard

_HEADS = ("", "hazard", "required", "found", "verdict", "safe way", "seconds")


@dataclass(frozen=True)
class CatalogueAccount:
    """Called with the runs of the hazards that were chosen, by id."""

    hazards: Mapping[str, Hazard]

    def __call__(
        self,
        runs: Sequence[RunReport],
        report: Path,
        _seed: int,
        _versions: Mapping[str, Any],
        course: Course,
        colour: bool,
    ) -> Account:
        rows = self._rows(runs)
        return Account(
            self._data(rows, report, course), self._text(rows, runs, course, colour), self._code(runs, course)
        )

    def _rows(self, runs: Sequence[RunReport]) -> list[HazardRuns]:
        by_name = {run.scenario: run for run in runs}

        def run_of(scenario: Scenario | None) -> RunReport | None:
            return by_name.get(scenario.name) if scenario is not None else None

        return [
            HazardRuns(name, hazard.about, run_of(hazard.unsafe), run_of(hazard.safe))
            for name, hazard in self.hazards.items()
        ]

    def _seconds(self, name: str, course: Course) -> float:
        return round(sum(course.seconds.get(each.name, 0.0) for each in self.hazards[name].scenarios), 1)

    def _data(self, rows: Sequence[HazardRuns], report: Path, course: Course) -> dict[str, Any]:
        unsafe = [row for row in rows if not row.is_false_alarm]
        alarms = [row for row in rows if row.is_false_alarm]
        return {
            "hazards": [self._as_data(row, course) for row in unsafe],
            "hazards_total": len(unsafe),
            "caught": sum(row.caught for row in unsafe),
            "controls_total": len(rows),
            "held": sum(row.held for row in rows),
            "report": str(report),
            "false_alarms": [
                {
                    "id": row.name,
                    "verdict": row.safe.verdict if row.safe else None,
                    "held": row.held,
                    "seconds": self._seconds(row.name, course),
                }
                for row in alarms
            ],
            **course.as_data(),
        }

    def _as_data(self, row: HazardRuns, course: Course) -> dict[str, Any]:
        hazard = self.hazards[row.name]
        # Of several required anomalies the first one; `caught` is about all of them.
        expected, bound = next(iter(hazard.unsafe.requires.items())) if hazard.unsafe else ("", 0)
        return {
            "id": row.name,
            "class": str(hazard.kind),
            "expected": expected,
            "lower_bound": bound,
            "verdict": row.unsafe.verdict if row.unsafe else None,
            "found": row.unsafe.requirement.found.get(expected, 0) if row.unsafe else None,
            "caught": row.caught,
            "control_verdict": row.safe.verdict if row.safe else None,
            "control_held": row.held,
            "seconds": self._seconds(row.name, course),
        }

    def _text(
        self, rows: Sequence[HazardRuns], runs: Sequence[RunReport], course: Course, colour: bool
    ) -> str:
        table = [_HEADS, *(self._line(row, course) for row in rows)]
        tones = [None, *(TONES[row.standing] for row in rows)]
        lines = [coloured(line, tone, colour) for line, tone in zip(aligned(table), tones, strict=True)]
        for row in rows:
            if row.unsafe or row.safe:
                lines += ["", printable(f"{row.name}: {row.about['title']}.")]
                lines += [_folded(printable(each)) for each in row.sentences()]
        besides = [printable(line) for line in course.lines(len(runs))]
        return "\n".join([*lines, "", *besides, *([""] if besides else []), _closing(rows)])

    def _line(self, row: HazardRuns, course: Course) -> tuple[str, ...]:
        unsafe, safe = row.unsafe, row.safe
        return (
            MARKS[row.standing],
            row.name,
            "nothing" if row.is_false_alarm else required(unsafe) if unsafe else words.NOTHING,
            found(unsafe) if unsafe else words.NOTHING,
            unsafe.verdict if unsafe else words.NOTHING,
            safe.verdict if safe else words.NOTHING,
            f"{self._seconds(row.name, course):,.1f}" if unsafe or safe else words.NOTHING,
        )

    def _code(self, runs: Sequence[RunReport], course: Course) -> int:
        """Return the exit code: a hazard that was skipped is not caught, so nothing is proven about it."""
        code = summary.exit_code(runs)
        return exits.INCONCLUSIVE if code == exits.AS_PROMISED and course.skipped else code


def _closing(rows: Sequence[HazardRuns]) -> str:
    unsafe = [row for row in rows if not row.is_false_alarm]
    parts = []
    if unsafe:
        parts.append(f"{sum(r.caught for r in unsafe)} of {words.plural(len(unsafe), 'hazard')} caught")
    alarms = len(rows) - len(unsafe)
    ways = words.plural(len(rows), "safe way")
    ways += f", {words.plural(alarms, 'false alarm')} among them," if alarms and unsafe else ""
    parts.append(f"{sum(row.held for row in rows)} of {ways} held")
    missed = [row.name for row in rows if (not row.caught and not row.is_false_alarm) or not row.held]
    return "; ".join(parts) + (f"; not as required: {', '.join(missed)}." if missed else ".")


def _folded(line: str) -> str:
    return textwrap.fill(
        line,
        summary.WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )
