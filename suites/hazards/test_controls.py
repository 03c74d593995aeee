"""Every hazard of this folder: the harness has to find it, else it is blind; and the safe way has to hold."""

from __future__ import annotations

from typing import Any

import pytest

from harness.campaign import Execute
from harness.contracts import Verdict
from harness.scenario import Scenario
from suites.scenarios import hazards

FOUND = hazards.found()


def _marked(name: str, hazard: hazards.Hazard) -> Any:
    return pytest.param(hazard.control, marks=[pytest.mark.smoke] if hazard.place_in_prove else [], id=name)


@pytest.mark.parametrize("scenario", [_marked(*each) for each in FOUND.items()])
def test_the_hazard_is_found(execute: Execute, scenario: Scenario) -> None:
    result = execute(scenario)
    assert result.as_expected, result.explain()


@pytest.mark.parametrize("scenario", [h.safe for h in FOUND.values() if h.safe], ids=lambda s: s.name)
def test_the_safe_way_holds(execute: Execute, scenario: Scenario) -> None:
    result = execute(scenario)
    assert result.verdict is Verdict.HELD, result.explain()
