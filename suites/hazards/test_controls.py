"""Controls: the harness has to find known anomalies. HELD here means that it is blind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.campaign import Execute
from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario
from suites.scenarios.matrix import ABORTED_UNCOMMITTED, ACKS1_FAILOVER, HAZARDS, RETRY_DUPLICATES


@pytest.mark.smoke
@pytest.mark.parametrize("scenario", HAZARDS, ids=lambda s: s.hazard)
def test_the_hazard_is_found(execute: Execute, scenario: Scenario) -> None:
    result = execute(scenario)
    assert result.as_expected, result.explain()


def _safe(hazard: Scenario, name: str, **changes: Any) -> Scenario:
    return replace(hazard, name=f"safe-{name}", expected=Verdict.HELD, requires={}, tolerates=(), **changes)


SAFE = [
    _safe(ACKS1_FAILOVER, "acks_all_failover", producers=ProducerSettings()),
    _safe(RETRY_DUPLICATES, "idempotent_retry", mode=Mode.IDEMPOTENT, judged_as=None),
    _safe(ABORTED_UNCOMMITTED, "aborted_committed", consumers=ConsumerSettings()),
]


@pytest.mark.parametrize("scenario", SAFE, ids=lambda s: s.name)
def test_the_safe_way_holds(execute: Execute, scenario: Scenario) -> None:
    result = execute(scenario)
    assert result.verdict is Verdict.HELD, result.explain()
