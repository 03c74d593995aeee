"""Ten minutes of an exactly-once pipeline under rotating faults. Opt-in: `pytest suites/test_soak.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.campaign import Execute
from harness.contracts import Verdict
from suites.scenarios.pipelines import soak

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(2400)]


def test_a_pipeline_holds_through_everything(
    execute: Execute, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    minutes = float(request.config.getoption("--soak-minutes"))
    result = execute(soak(minutes))
    seen = result.reconciled["coverage"]
    covered = {
        **seen["transactions"],
        "rebalances": seen["rebalances"],
        "coordinator_moves": seen["coordinator_moves"],
        "windows": len(seen["windows"]),
    }
    record_property("covered", covered)
    print(f"\n{covered}")
    assert result.verdict is Verdict.HELD, result.explain()
    assert not result.judgement.stalled, result.explain()
    needed = (
        "committed",
        "aborted_by_intent",
        "aborted_by_fault",
        "unknown",
        "fencings",
        "rebalances",
        "coordinator_moves",
    )
    assert not [name for name in needed if not covered[name]], f"not all of it happened: {covered}"
