"""At-least-once: nothing acked is lost, duplicates are counted."""

from __future__ import annotations

import pytest

from harness.campaign import Execute
from harness.contracts import Mode, Verdict
from harness.scenario import Scenario
from suites.scenarios.matrix import FAULTS, crossed, fault_free

MODE = Mode.AT_LEAST_ONCE


@pytest.mark.smoke
@pytest.mark.parametrize("scenario", [crossed(MODE, fault) for fault in FAULTS], ids=lambda s: s.name)
def test_acked_messages_survive(execute: Execute, scenario: Scenario) -> None:
    result = execute(scenario)
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.count("acked") > 0


def test_nothing_is_lost_without_faults(execute: Execute) -> None:
    result = execute(fault_free(MODE))
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.count("lost") == result.count("undelivered") == 0
