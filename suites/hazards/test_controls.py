"""Controls: the harness has to see what is known to go wrong. A HELD here means that it is blind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.campaign import Execute
from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario
from suites.matrix import ABORTED_UNCOMMITTED, ACKS0_LOSS, ACKS1_FAILOVER, RETRY_DUPLICATES

HAZARDS = [
    (ACKS0_LOSS, "lost"),
    (ACKS1_FAILOVER, "lost"),
    (RETRY_DUPLICATES, "duplicated"),
    (ABORTED_UNCOMMITTED, "aborted_read"),
]


@pytest.mark.smoke
@pytest.mark.parametrize(("scenario", "anomaly"), HAZARDS, ids=[s.hazard for s, _ in HAZARDS])
def test_the_hazard_is_seen(execute: Execute, scenario: Scenario, anomaly: str) -> None:
    result = execute(scenario)
    assert result.verdict is Verdict.VIOLATED, result.explain()
    assert anomaly in result.violations, result.explain()


SAFE = [
    replace(
        ACKS1_FAILOVER, name="safe-acks_all_failover", producers=ProducerSettings(), expected=Verdict.HELD
    ),
    replace(
        RETRY_DUPLICATES,
        name="safe-idempotent_retry",
        mode=Mode.IDEMPOTENT,
        judged_as=None,
        expected=Verdict.HELD,
    ),
    replace(
        ABORTED_UNCOMMITTED,
        name="safe-aborted_committed",
        consumers=ConsumerSettings(),
        expected=Verdict.HELD,
    ),
]


@pytest.mark.parametrize("scenario", SAFE, ids=lambda s: s.name)
def test_the_safe_way_holds(execute: Execute, scenario: Scenario) -> None:
    result = execute(scenario)
    assert result.verdict is Verdict.HELD, result.explain()
