"""The result of many runs for machines and terminals: JSON rows, a table, an exit code."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.ledger.rundir import RunDir
from harness.runtime import exits
from harness.runtime.terminal import printable
from reports import words
from reports.course import Course
from reports.headline import MARKS, TONES, worst
from reports.model import RunReport, Standing, read_runs

WIDTH = 140
COUNTS = ("attempted", "acked", "in_log", "delivered", "lost", "duplicated", "reordered")
_COLOURS = {"good": "\033[32m", "bad": "\033[1;31m", "unsure": "\033[33m"}
_DIM, _OFF = "\033[2m", "\033[0m"


@dataclass(frozen=True)
class Account:
    """The result of a command: an object for --json, a text for terminals, and the exit code."""

    data: Mapping[str, Any]
    text: str
    code: int


# Runs, path of the report, seed, versions, course, and whether the text has colours.
Accounting = Callable[[Sequence[RunReport], Path, int, Mapping[str, Any], Course, bool], Account]


def account(
    runs: Sequence[RunReport],
    report_path: Path,
    seed: int,
    versions: Mapping[str, Any],
    course: Course,
    colour: bool,
) -> Account:
    """Return the account of `prove` and `matrix`."""
    data = summary(runs, report_path, seed, versions, course)
    return Account(data, table(runs, colour, course), exit_code(runs))


def read(runs: Iterable[RunDir]) -> tuple[RunReport, ...]:
    """Read the runs; runs that crashed are included."""
    return read_runs(runs)


def row(run: RunReport) -> dict[str, Any]:
    """Return one run for `prove --json`. A count that was not taken is null; `bite` is the proof, null without one."""
    return {
        "scenario": run.scenario,
        "mode": run.mode,
        "fault": run.fault,
        "control": run.control,
        "expected": run.expected,
        "verdict": run.verdict,
        "as_expected": run.standing is Standing.AS_PROMISED,
        "required": dict(run.requirement.required),
        "found": dict(run.requirement.found),
        "shortfalls": list(run.requirement.reasons),
        **{name: run.count(name) for name in COUNTS},
        "unavailable_s_max": run.unavailable_s_max,
        "bite": run.bite,
        "run_dir": str(run.path),
        "software": run.software,
        **({"error": run.error} if run.error else {}),
    }


def summary(
    runs: Sequence[RunReport],
    report_path: Path,
    seed: int | None,
    versions: Mapping[str, Any],
    course: Course | None = None,
) -> dict[str, Any]:
    """Return the summary of all runs; with `course` also planned runs, skipped scenarios with reasons, and the early end."""
    return {
        "runs": [row(run) for run in runs],
        "report": str(report_path),
        "seed": seed,
        "versions": dict(versions),
        **(course.as_data() if course is not None else {}),
    }


def exit_code(runs: Sequence[RunReport]) -> int:
    """Return the exit code of the program.

    0: every run is as expected. 1: a run is VIOLATED by something that it does not plant, or does not show what it must
    raise (a control that did not catch). 2: else, a run cannot be read. 3: else, a run is INCONCLUSIVE, or there is no run at
    all. A skipped scenario is no run and changes nothing.
    """
    readable = [run for run in runs if not run.error]
    if len(readable) < len(runs):
        violated = bool(readable) and exit_code(readable) == exits.VIOLATED
        return exits.VIOLATED if violated else exits.BAD_USE
    if not runs or worst(runs) is Standing.UNPROVEN:
        return exits.INCONCLUSIVE
    return exits.AS_PROMISED if worst(runs) is Standing.AS_PROMISED else exits.VIOLATED


def table(runs: Sequence[RunReport], colour: bool = False, course: Course | None = None) -> str:
    """Return an aligned table of at most 140 columns, the requirements of runs, and a closing sentence.

    With `course` also the skipped scenarios with reasons, and what ended the command early.
    """
    lines = _narrowed(
        _lines(runs, words.number), ((1, 12), (0, 24))
    )  # the scenario's name mostly has the fault
    if _width(lines) > WIDTH:
        lines = _narrowed(_lines(runs, words.short_number), ((1, 8), (0, 12), (2, 8)))
    texts = len(_TEXTS)
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    shown = []
    for number, line in enumerate(lines):
        left = "  ".join(cell.ljust(width) for cell, width in zip(line[:texts], widths, strict=False))
        right = " ".join(c.rjust(w) for c, w in zip(line[texts:], widths[texts:], strict=True))
        whole = f"{left}  {right}".rstrip()
        tone = TONES[runs[number - 2].standing] if number >= 2 else None
        shown.append(coloured(whole, tone, colour))
    besides = course.lines(len(runs)) if course is not None else []
    folded = [textwrap.fill(line, WIDTH, break_on_hyphens=False) for line in besides]
    sentence = textwrap.fill(closing(runs), WIDTH, break_on_hyphens=False)
    return "\n".join([*shown, "", *_required(runs), *([*folded, ""] if folded else []), sentence])


def _required(runs: Sequence[RunReport]) -> list[str]:
    """Return a line for each run with requirements, the reasons why it does not satisfy them, and an empty line."""
    asked = [run for run in runs if run.required or run.requirement.shortfalls]
    wide = max((len(run.scenario) for run in asked), default=0)
    lines = []
    for run in asked:
        lines.append(f"{MARKS[run.standing]} {run.scenario.ljust(wide)}  {run.required}".rstrip())
        lines += [f"    {reason}" for reason in run.requirement.reasons if reason != run.required]
    folded = [textwrap.fill(line, WIDTH, subsequent_indent="    ", break_on_hyphens=False) for line in lines]
    return [*folded, ""] if folded else []


def closing(runs: Sequence[RunReport]) -> str:
    """Return the closing sentence: `12 of 13 runs as promised; 1 VIOLATED unexpectedly: exactly_once-kill-leader.`"""
    if not runs:
        return "No runs: nothing was proven."
    labels = {
        Standing.BROKEN: "VIOLATED unexpectedly",
        Standing.MISSED: "did not catch what was planted",
        Standing.UNREADABLE: "cannot be read",
        Standing.UNPROVEN: "INCONCLUSIVE",
    }
    fine = sum(run.standing is Standing.AS_PROMISED for run in runs)
    parts = [f"{fine} of {words.plural(len(runs), 'run')} as promised"]
    for standing, text in labels.items():
        names = [printable(run.scenario) for run in runs if run.standing is standing]
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            parts.append(f"{len(names)} {text}: {', '.join(names[:5])}{more}")
    return "; ".join(parts) + "."


_TEXTS: tuple[tuple[str, str], ...] = (
    ("", "scenario"), ("", "fault"), ("", "judged as"), ("", "verdict"), ("", ""),
)  # fmt: skip
_NUMBERS: tuple[tuple[str, str], ...] = (
    ("attemp-", "ted"), ("", "acked"), ("in the", "log"), ("deliv-", "ered"), ("", "lost"),
    ("dupli-", "cated"), ("re-", "ordered"), ("unavail-", "able max"),
)  # fmt: skip


def _lines(runs: Sequence[RunReport], number: Callable[[float | None], str]) -> list[list[str]]:
    heads = [*_TEXTS, *_NUMBERS]
    rows = (
        [
            printable(run.scenario),
            printable(words.fault(run.fault)),
            printable(words.mode(run.judged_as)),
            run.verdict,
            MARKS[run.standing],
            *(number(run.count(name)) for name in COUNTS),
            words.seconds(run.unavailable_s_max),
        ]
        for run in runs
    )
    return [[above for above, _ in heads], [below for _, below in heads], *rows]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows as lines whose columns are aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def coloured(line: str, tone: str | None, colour: bool) -> str:
    """Return the line in the colour of a tone; without a tone it is dimmed, as heads of tables are."""
    if not colour:
        return line
    return f"{_COLOURS[tone] if tone else _DIM}{line}{_OFF}"


def _narrowed(lines: list[list[str]], least: Sequence[tuple[int, int]]) -> list[list[str]]:
    """Shorten the columns, in the given order, down to their least width until the table fits."""
    for column, fewest in least:
        over = _width(lines) - WIDTH
        wide = max(len(line[column]) for line in lines)
        if over > 0 and wide > fewest:
            most = max(fewest, wide - over)
            lines = [[*line[:column], _shorten(line[column], most), *line[column + 1 :]] for line in lines]
    return lines


def _width(lines: Sequence[Sequence[str]]) -> int:
    columns = list(zip(*lines, strict=True))
    return sum(max(map(len, c)) for c in columns) + 2 * len(_TEXTS) + len(_NUMBERS) - 1


def _shorten(text: str, most: int) -> str:
    """Shorten a text in its middle: names differ at either end."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}\u2026{text[len(text) - tail :]}"
