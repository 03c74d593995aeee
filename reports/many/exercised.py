"""The faults on targets that runs planned, and those that took effect: the cells of coverage, and the filters of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.trends.row import NO_FAULT
from reports import words
from reports.files import items, mapping
from reports.model import RunReport


@dataclass(frozen=True)
class Blow:
    """A fault on a target in one run."""

    fault: str
    target: str
    bit: bool


def blows(run: RunReport) -> list[Blow]:
    """Return the planned windows of a run, each with its effect; without a schedule those that happened.

    Windows have the numbers of their places in the schedule, from 0.
    """
    happened = {window.number: window for window in run.windows}
    planned = [each for each in items(run.settings, "schedule") if isinstance(each, dict)]
    if not planned:
        return [Blow(window.fault, window.target, window.bit) for window in run.windows]
    return [
        Blow(
            str(mapping(each, "fault").get("fault", "unknown")),
            target_text(mapping(each, "on")),
            str(number) in happened and happened[str(number)].bit,
        )
        for number, each in enumerate(planned)
    ]


def target_text(described: Mapping[str, Any]) -> str:
    """Return a target as the windows of a run name it: the role, and its settings except partition 0."""
    settings = [(name, value) for name, value in described.items() if name != "target"]
    shown = [str(value) for name, value in settings if (name, value) != ("partition", 0)]
    return "-".join([str(described.get("target", "unknown")), *shown])


def faults_of(run: RunReport) -> list[str]:
    """Return the names of the faults of a run, each once; none for a run without faults."""
    return list(dict.fromkeys(blow.fault for blow in blows(run)))


def filters(runs: Sequence[RunReport], two_sets: bool) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return the filters that divide these runs: name, label, and options as value and text."""
    verdicts = list(dict.fromkeys(run.verdict for run in runs))
    modes = sorted({run.mode for run in runs}, key=lambda mode: (*words.MODES, mode).index(mode))
    faults = sorted({fault for run in runs for fault in faults_of(run) or [NO_FAULT]})
    found = [
        ("set", "both sets", [(each, f"set {each}") for each in "AB" if two_sets]),
        ("verdict", "any verdict", [(each, each) for each in verdicts]),
        ("mode", "any mode", [(each, words.mode(each)) for each in modes]),
        ("faults", "any fault", [(each, words.fault(each)) for each in faults]),
    ]
    return [each for each in found if len(each[2]) > 1]
