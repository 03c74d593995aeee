"""The numbers of repeated runs: how many are as expected, their findings, and the reasons of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.campaign import Result
from harness.contracts import Mode, Verdict
from harness.ledger.rundir import RunDir
from harness.scenario import Scenario
from harness.verdict import Settings, judge
from suites.harness_checks.test_repeated import CONTROLS, SAFE, numbers
from suites.scenarios import hazards
from tests.test_verdict import WINDOW, reconciled

CONTROL = Scenario(
    name="control",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    tolerates=("phantom",),
)


def result(scenario: Scenario, **changes: Any) -> Result:
    outcome = reconciled(**changes)
    settings = Settings(
        scenario.expected, 1, requires=scenario.requires, tolerates=frozenset(scenario.tolerates)
    )
    return Result(RunDir(Path("runs/a/1")), scenario, outcome, judge(outcome, scenario.guarantee, settings))


def test_controls_are_counted_with_their_findings() -> None:
    counts = numbers(
        [
            result(CONTROL, counts={"lost": 7}),
            result(CONTROL, counts={"lost": 3, "phantom": 1}),
            result(CONTROL, counts={"lost": 5}, windows=[WINDOW | {"bit": False, "proof": "nothing"}]),
        ]
    )
    assert (counts["runs"], counts["as_expected"], counts["verdicts"]) == (3, 2, {"VIOLATED": 3})
    assert (counts["found"], counts["also"]) == ({"lost": [3, 7]}, {"phantom": 1})
    assert counts["reasons"] == {"fault window 0 (kill) did not bite: nothing": 1}
    assert counts["run_dirs"] == ["runs/a/1"]


def test_doubts_of_safe_runs_are_counted_by_reason() -> None:
    safe = Scenario(name="safe", mode=Mode.IDEMPOTENT)
    counts = numbers([result(safe), result(safe, drained=False), result(safe, counts={"lost": 2})])
    assert counts["verdicts"] == {"HELD": 1, "INCONCLUSIVE": 1, "VIOLATED": 1}
    assert counts["reasons"]["lost 2"] == 1
    assert any("not drained" in reason for reason in counts["reasons"])


def test_every_control_of_the_suites_is_repeated_and_names_its_anomaly() -> None:
    provoked = [hazard for hazard in hazards.found().values() if hazard.unsafe]
    assert len({s.name for s in CONTROLS}) == len(CONTROLS) == 1 + len(provoked)
    assert all(s.requires for s in CONTROLS)
    assert len({s.name for s in SAFE}) == 12
    assert all(s.expected is Verdict.HELD and s.schedule for s in SAFE)
