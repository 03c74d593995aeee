"""Each run: its verdict with reasons, counts, timeline, windows with their proofs, and numbers of comparisons."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from reports import pictures, words
from reports.files import texts
from reports.model import Report, RunReport, Standing, Window
from reports.sections import findings

PLACE = 40  # sections are in the order of their places
MOST_OPEN = 3  # so few runs that are not as promised are unfolded when the page is loaded
FLOW = {"attempted": "attempted", "acked": "acked", "rejected": "rejected", "unknown": "unknown",
        "in_log": "in the log", "delivered": "delivered"}  # fmt: skip
_FACTS = ("progress_before", "progress_after", "drained", "drain_detail", "reads", "not_asked", "unjudged", "transactions",
          "observed", "rebalances", "coordinator_moves", "commits", "sessions", "readers")  # fmt: skip


def section(report: Report) -> dict[str, Any]:
    """Return the data of all runs."""
    amiss = [r.path for r in report.runs if r.standing is not Standing.AS_PROMISED][:MOST_OPEN]
    opened = amiss or [r.path for r in report.runs if len(report.runs) == 1]
    return {
        "links": [("runs", "Runs")],
        "shown": [
            {
                "run": run,
                "place": place,
                "open": run.path in opened,
                "flow": [(label, run.count(name)) for name, label in FLOW.items() if name in run.counts],
                "findings": findings.of_run(run),
                "compared": sorted(run.compared.items()),
                "facts": [(words.words(n), _fact(run.coverage[n])) for n in _FACTS if n in run.coverage],
                "stalled": texts(run.coverage, "stalled"),
                "gaps": texts(run.coverage, "gaps"),
                "errors": texts(run.coverage, "errors"),
                "notes": texts(run.coverage, "notes"),
                "settings": _settings(run),
                "chart": _embedded(run),
                "pictures": drawn,
            }
            for place, (run, drawn) in enumerate(
                zip(report.runs, pictures.of_runs(report.runs), strict=True), 1
            )
        ],
        "standings": [(s.value, sum(r.standing is s for r in report.runs)) for s in Standing],
    }


def _settings(run: RunReport) -> list[tuple[str, str]]:
    """Return the settings that are set. The texts about a hazard are in the section about hazards."""
    settings = {name: value for name, value in run.settings.items() if name != "about"}
    return [row for row in words.flat(settings) if row[1] != words.NOTHING]


def spark(run: RunReport, width: int = 240, height: int = 52, points: int = 48) -> dict[str, Any] | None:
    """Return acks per second as a small line with its fault windows, as coordinates of an inline SVG."""
    line = run.timeline
    if len(line) < 2 or max(line.acked) <= 0:
        return None
    size = -(-len(line) // points)
    rates = [sum(p) / len(p) for p in (line.acked[i : i + size] for i in range(0, len(line), size))]
    top = max(rates) or 1.0
    span = line.end_s - line.start_s

    def across(t_s: float) -> int:
        return round(width * min(1.0, max(0.0, (t_s - line.start_s) / span)))

    step = width / (len(rates) - 1) if len(rates) > 1 else width
    path = " ".join(f"{i * step:.0f},{height - 2 - (height - 6) * r / top:.0f}" for i, r in enumerate(rates))
    bands = []
    for w in run.windows:
        if w.open_s is not None:
            left, right = across(w.open_s), across(_closed_s(w, line.end_s))
            bands.append((left, max(2, right - left)))
    return {"width": width, "height": height, "path": path, "bands": bands}


def _closed_s(w: Window, end_s: float) -> float:
    """Return the end of a window; a window that never healed lasts to the end of the run."""
    if w.healed_s is not None:
        return w.healed_s
    return w.heal_s if w.heal_s is not None and w.healed else end_s


def _embedded(run: RunReport) -> Markup | None:
    """Return the numbers of the chart as JSON that cannot end its script element, whatever texts it contains."""
    if not len(run.timeline):
        return None
    end_s = run.timeline.end_s
    windows = [
        {"n": w.number, "label": _label(w), "open": w.open_s, "bite": w.bite_s if w.bit else None,
         "heal": w.heal_s, "healed": _closed_s(w, end_s)}
        for w in run.windows
        if w.open_s is not None
    ]  # fmt: skip
    return htmlsafe_json_dumps({**run.timeline.compact(), "windows": windows}, separators=(",", ":"))


def _label(w: Window) -> str:
    return f"{w.fault} {w.target}".strip()


def _fact(value: Any) -> str:
    return words.number(value) if type(value) is int else words.plain(value)


def relative_to(beside: Path, path: Path) -> str:
    """Return the path relative to `beside`, the folder of the report, if both are on one drive.

    So both can be moved together, and the report names no folder of this machine.
    """
    try:
        return Path(os.path.relpath(path, beside)).as_posix()
    except ValueError:
        return str(path)


def shading(windows: Sequence[Window]) -> str:
    """Return the windows in words, for screen readers."""
    described = [
        f"{_label(w)} from {words.seconds(w.open_s)} to {words.seconds(w.healed_s)}"
        for w in windows
        if w.open_s is not None
    ]
    return "; ".join(described) or "no fault windows"
