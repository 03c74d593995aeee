"""The pipelines of suites/test_exactly_once.py without transactions: at-least-once and at-most-once."""

from __future__ import annotations

import pytest

from harness.campaign import Execute
from harness.scenario import Scenario
from suites.scenarios.pipelines import WEAKER_PIPELINES
from suites.support.promises import keeps_its_effects

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("scenario", WEAKER_PIPELINES, ids=lambda s: s.name)
def test_each_input_takes_effect_as_promised(execute: Execute, scenario: Scenario) -> None:
    keeps_its_effects(execute(scenario))
