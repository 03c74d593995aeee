"""The facts of a night: from its journal, whatever that contains; and the headline, which the canary decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.statistics.rates import Rate
from reports.headline import headline_of
from reports.many.night import Minimised, Night, rate_of
from reports.model import Report, RunReport
from tests.reports.many.sample_night import sample_night, scenarios

NAMES = [each.name for each in scenarios()]
KNOWN: dict[str, Any] = {"name": "n", "seed": 7, "minutes": 10.0, "used_s": 60.0, "planned": 9, "ended": True,
                         "folder": Path()}  # fmt: skip


def page(tmp_path: Path, found: bool, **more: Any) -> Report:
    _, runs = sample_night(tmp_path, blind=not found, **more)
    night = Night.of({"canary": {"scenario": NAMES[2], "found": found}}, **KNOWN)
    return Report("t", "", 7, {}, None, None, tuple(map(RunReport.read, runs)), night=night)


def test_a_night_that_holds_says_that_its_canary_was_found(tmp_path: Path) -> None:
    head = headline_of(page(tmp_path, found=True))
    assert (head.sentence, head.tone) == ("All 8 promises held", "good")
    assert "was found" in head.beneath


@pytest.mark.parametrize("broken", [{}, {NAMES[4]: {"lost": 2}}], ids=["held", "violated"])
def test_without_its_canary_a_night_is_red_whatever_else_it_says(
    tmp_path: Path, broken: dict[str, dict[str, int]]
) -> None:
    head = headline_of(page(tmp_path, found=False, broken=broken))
    assert (head.tone, head.sentence) == ("bad", "The canary was not found: this night proves nothing")


def test_a_canary_that_was_not_reached_is_named_so() -> None:
    night = Night.of({"canary": {"scenario": "c"}, "not_reached": ["c"]}, **KNOWN)
    assert "was not run" in night.canary_sentence
    assert not night.canary_found


@pytest.mark.parametrize(
    "outcome",
    [
        {},
        {"canary": 3, "findings": "x", "cut": {}, "troubles": [1], "leaks": None, "clusters": "two"},
        {"findings": [3, {}, {"scenario": "a", "replayed": {"shown": 5, "conclusive": 2}, "minimised": {}}]},
        {"findings": [{"scenario": [], "replayed": {"shown": True}, "minimised": {"test": 3, "rate": []}}]},
    ],
)
def test_values_of_another_type_read_as_absent(outcome: dict[str, Any]) -> None:
    night = Night.of(outcome, **KNOWN)
    assert not night.canary_found
    assert night.replayed == {}
    assert all(not each.shows for each in night.minimised.values())


def test_replays_and_minimised_scenarios_are_read() -> None:
    night = Night.of({"findings": [{
        "scenario": "a", "replayed": {"shown": 1, "conclusive": 2},
        "minimised": {"shows": True, "complete": False, "faults": 1, "taken": ["x"], "test": "def …",
                      "rate": {"shown": 2, "conclusive": 2}},
    }]}, **KNOWN)  # fmt: skip
    assert night.replayed == {"a": Rate(1, 2)}
    assert night.minimised == {"a": Minimised(True, False, 1, ("x",), Rate(2, 2), "def …")}
    assert rate_of({"shown": -1, "conclusive": 2}) is None
