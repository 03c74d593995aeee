"""Exactly-once (transactional producers, read_committed readers): no loss, no duplicate, no aborted record."""

from __future__ import annotations

import pytest

from harness.campaign import Execute
from harness.contracts import Mode, Verdict
from harness.scenario import Scenario
from suites.matrix import FAULTS, crossed, fault_free

MODE = Mode.EXACTLY_ONCE


@pytest.mark.smoke
@pytest.mark.parametrize("scenario", [crossed(MODE, fault) for fault in FAULTS], ids=lambda s: s.name)
def test_transactions_survive_whole(execute: Execute, scenario: Scenario) -> None:
    result = execute(scenario)
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.reconciled["coverage"]["transactions"]["committed"] > 0


def test_aborts_leave_no_trace_without_faults(execute: Execute) -> None:
    result = execute(fault_free(MODE))
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.reconciled["coverage"]["transactions"]["aborted"] > 0, (
        "no transaction was aborted: nothing shown"
    )
