"""The report of a night: its runs, and the facts that only its journal has."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import LedgerError, UsageError
from harness.ledger.rundir import RunDir, need_file
from harness.nights.coverage import Combination, PairCoverage
from harness.nights.journal import FILE, NIGHTS, NightState, read
from harness.nights.night import outcome

if TYPE_CHECKING:
    from harness.trends.differences import Differences
    from reports.course import Course
    from reports.many.night import Cell, Night

LAST = "last"
_STAMP = "%Y%m%d-%H%M%S"  # the name of a night begins with it
_MOST_NAMED = 5


def journal_of(runs: Path, name: str) -> Path:
    """Return the journal of the night with this folder name, or of the newest of this date or of all (`last`)."""
    found = sorted(file.parent.name for file in (runs / NIGHTS).glob(f"*/{FILE}"))
    begins = "" if name == LAST else _beginning(name)
    fits = [each for each in found if each == name] or [each for each in found if each.startswith(begins)]
    if not name or not fits:
        known = ", ".join(reversed(found[-_MOST_NAMED:])) or "none"
        raise UsageError(f"--night {name}: no such night in {runs}; the newest are: {known}")
    return runs / NIGHTS / fits[-1] / FILE


def _beginning(name: str) -> str:
    """Return what the names of the nights of a date begin with; other texts as they are."""
    with suppress(ValueError):
        return time.strftime("%Y%m%d", time.strptime(name, "%Y-%m-%d"))
    return name


def runs_of(runs: Path, state: NightState) -> list[RunDir]:
    """Return the folders of the executed runs, in their order.

    A journal has whole paths, and the folder of the runs may have been moved: only the last two parts count.
    """
    places = [Path(path).parts[-2:] for path in state.executed.values() if path]
    return [RunDir((runs / Path(*parts)).resolve()) for parts in places if _are_names(parts)]


def _are_names(parts: tuple[str, ...]) -> bool:
    """Return True for the names of a scenario and of a run; not for what leads elsewhere."""
    return len(parts) == 2 and not any(part in ("..", "/") or "\0" in part for part in parts)


def facts(name: str, state: NightState, runs: Path, everything: PairCoverage) -> Night:
    """Return what the report shows beside the runs. `everything`: the coverage of all nights, this one included."""
    from reports.files import decimal
    from reports.many.night import Night
    from suites.nights.choices import possible_pairs

    cells = {each: cell for each in {*everything.bit, *possible_pairs()} if (cell := _cell(each)) is not None}
    return Night.of(
        outcome(state),
        name=name,
        seed=state.plan.seed,
        minutes=decimal(state.plan.minutes) or 0.0,
        used_s=decimal(state.used_s) or 0.0,
        planned=len(state.plan.scenarios),
        ended=state.ended,
        folder=runs,
        possible=frozenset(cells[each] for each in possible_pairs()),
        covered={cells[each]: times for each, times in everything.bit.items() if each in cells},
    )


def _cell(pair: Combination) -> Cell | None:
    """Return a pair of a fault as the report names it; None for other pairs."""
    named = dict(pair)
    fault = named.pop("fault", None)
    return None if fault is None else (fault, *next(iter(named.items())))


def course_of(state: NightState, ended: str, error: str | None = None) -> Course:
    """Return the course of a night; `error` is the one that ended it."""
    from reports.course import Course

    errors = (
        *(f"{name}: {text}" for name, text in state.troubles.items()),
        *state.leaks,
        *([error] if error else []),
    )
    return Course(len(state.executed), state.skipped, ended, errors, state.seconds)


def differences_of(name: str, runs: Path) -> Differences | None:
    """Return what differs between this night and those before it; None if the store has not both."""
    from harness.trends.differences import differences
    from harness.trends.store import FOLDER, read_rows

    with suppress(UsageError, LedgerError, OSError):
        found = differences(read_rows(runs / FOLDER), session=name)
        return found if found.baseline_sessions else None
    return None


def stored_night(runs: Path, name: str) -> tuple[list[RunDir], dict[str, Any]]:
    """Return the runs of a stored night, and what `reports.build.build` needs to know about it."""
    from harness.nights.journal import earlier
    from reports.course import COMPLETE, INTERRUPTED

    file = journal_of(runs, name)
    need_file(file, "the journal of a night is a plain file")
    state, night = read(file), file.parent.name
    folders = runs_of(runs, state)
    if not folders:
        raise UsageError(f"--night {name}: {night} has no executed run yet; give another night")
    how = COMPLETE if state.ended else INTERRUPTED
    known = facts(night, state, runs, PairCoverage.of(earlier(runs)))
    return folders, {
        "title": f"onceproof nightly, {night}",
        "command": nightly_command(state),
        "seed": state.plan.seed,
        "started": _started(night),
        "seconds": known.used_s,
        "course": course_of(state, how),
        "night": known,
        "differences": differences_of(night, runs),
    }


def nightly_command(state: NightState) -> str:
    return f"./onceproof nightly --minutes {state.plan.minutes:g} --seed {state.plan.seed}"


def _started(night: str) -> str:
    """Return the time in the name of a night as text; the name itself if it has none."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.strptime(night[: len("20260101-000000")], _STAMP))
    except ValueError:
        return night
