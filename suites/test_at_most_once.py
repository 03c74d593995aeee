"""At-most-once: losses are counted, never a duplicate, never a second processing."""

from __future__ import annotations

import pytest

from harness.campaign import Execute
from harness.contracts import Mode, Verdict
from harness.scenario import Scenario
from suites.scenarios.matrix import FAULTS, crossed, fault_free

MODE = Mode.AT_MOST_ONCE


@pytest.mark.parametrize("scenario", [crossed(MODE, fault) for fault in FAULTS], ids=lambda s: s.name)
def test_no_message_comes_twice(execute: Execute, scenario: Scenario) -> None:
    result = execute(scenario)
    assert result.as_expected, result.explain()


@pytest.mark.smoke
def test_a_killed_leader_costs_messages(execute: Execute) -> None:
    scenario = crossed(MODE, "kill-leader")
    assert scenario.requires == {"lost": 1}
    result = execute(scenario)
    assert result.as_expected, result.explain()


def test_nothing_is_lost_without_faults(execute: Execute) -> None:
    result = execute(fault_free(MODE))
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.count("lost") == 0, result.explain()
