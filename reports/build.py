"""The report writer: one HTML file that needs nothing else, and the same as JSON next to it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness import registry
from harness.errors import UsageError
from harness.ledger.rundir import RunDir
from harness.runtime import exits
from harness.runtime.disk_space import is_no_room, needed_in
from harness.trends.differences import Differences
from reports import sections, summary, words
from reports.course import Course
from reports.headline import MARKS, TONES, headline_of
from reports.many import json_twin, links
from reports.many.comparison import Comparison
from reports.many.exercised import faults_of, filters
from reports.many.folded import Folded
from reports.many.names import ShortNames
from reports.many.night import Night
from reports.model import Report, RunReport, read_runs
from reports.sections import runs

_HERE = Path(__file__).parent
_STYLES = ("uplot/uPlot.min.css", "report.css", "report-pictures.css", "many.css")
_SCRIPTS = ("uplot/uPlot.iife.min.js", "report-pictures.js", "report.js", "list.js")
_FILTERS = ("number", "seconds", "milliseconds", "mode", "fault", "words", "plain", "moment", "measures")


def build(
    runs: Sequence[RunDir],
    out: Path,
    *,
    title: str,
    command: str,
    seed: int | None,
    versions: Mapping[str, Any],
    started: Any,
    seconds: float | None,
    course: Course | None = None,
    night: Night | None = None,
    differences: Differences | None = None,
    comparison: Comparison | None = None,
) -> Path:
    """Write `out` (HTML) and `out` with the ending .json, each whole or not at all; return the path of the HTML.

    The page opens from a file, loads nothing from anywhere, and runs only the scripts it was built with.
    `started` is epoch seconds or a text.
    """
    report = Report(
        title,
        command,
        seed,
        dict(versions),
        started,
        seconds,
        read_runs(runs),
        course,
        night,
        differences,
        comparison,
    )
    out = out.resolve()
    with needed_in(out.parent):
        write_whole(out, page(report, out.parent))
        write_whole(
            out.with_suffix(".json"),
            json.dumps(as_data(report, out), separators=(",", ":"), default=str) + "\n",
        )
    return out


def page(report: Report, beside: Path) -> str:
    """Return the whole page as text. `beside` is the folder that it will be in."""
    style, script = _together(_STYLES), _licence() + _together(_SCRIPTS)
    shown = {name: module.section(report) for name, module in _sections().items()}
    return (
        templates()
        .get_template("report.html")
        .render(
            report=report,
            style=Markup(style),  # ours and vendored, no input from runs
            script=Markup(script),
            style_hash=hash_of(style),
            script_hash=hash_of(script),
            beside=beside,
            set_of=report.comparison.set_of if report.comparison is not None else lambda place: "",
            folded=Folded(len(report.runs)),
            short=ShortNames.of(run.scenario for run in report.runs),
            sections=list(shown),
            links=[link for data in shown.values() for link in data.get("links", ())],
            **shown,
        )
    )


def as_data(report: Report, out: Path) -> dict[str, Any]:
    """Return the keys of `prove --json`, and for each run everything that its part of the page shows."""
    blind = report.night is not None and not report.night.canary_found
    return {
        "title": report.title,
        "headline": headline_of(report).sentence,
        "exit_code": exits.VIOLATED if blind else summary.exit_code(report.runs),
        "command": report.command,
        "started": report.started,
        "seconds": report.seconds,
        **summary.summary(report.runs, out, report.seed, report.versions, report.course),
        "runs": [_run_as_data(run) for run in report.runs],
        **json_twin.as_data(report),
    }


def _run_as_data(run: RunReport) -> dict[str, Any]:
    whole = asdict(run)
    del whole["path"]  # it is `run_dir`
    return {**summary.row(run), "standing": run.standing.value, **whole}


@cache
def _sections() -> dict[str, Any]:
    """Return the modules of `reports/sections/` by name, in the order of their places in the page."""
    package = sections.__name__
    modules = {name: import_module(f"{package}.{name}") for name in registry.listed(package)}
    return dict(sorted(modules.items(), key=lambda each: each[1].PLACE))


@cache
def templates() -> Environment:
    env = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in _FILTERS:
        env.filters[name] = getattr(words, name)
    env.globals.update(
        tone=lambda run: TONES[run.standing],
        mark=lambda run: MARKS[run.standing],
        tone_of=TONES.__getitem__,
        plural=words.plural,
        mode_words=words.mode,
        plain_words=str,
        faults_of=faults_of,
        filters=filters,
        relative_to=runs.relative_to,
        folder_link=links.folder_link,
        spark=runs.spark,
        shading=runs.shading,
    )
    return env


def _together(names: Sequence[str]) -> str:
    return "\n".join((_HERE / "assets" / name).read_text(encoding="utf-8").strip() for name in names)


def _licence() -> str:
    """Return uPlot's licence, which must be in every copy, and a report contains one."""
    return (
        "/*! uPlot:\n" + (_HERE / "assets/uplot/LICENSE.txt").read_text(encoding="utf-8").strip() + "\n*/\n"
    )


def hash_of(text: str) -> str:
    """Return a hash for the content security policy: only exactly these scripts and styles may act in the page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def write_whole(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        if is_no_room(error):
            raise
        raise UsageError(
            f"{path}: the report cannot be written ({error.strerror}: {error.filename}); choose another place for it"
        ) from error
