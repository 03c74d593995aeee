"""Assertions about runs that several suites share."""

from __future__ import annotations

from harness.campaign import Result
from harness.contracts import Verdict


def keeps_its_effects(result: Result) -> None:
    """Check that a pipeline kept its promise, and that enough was compared to know it."""
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.reconciled["compared"]["missing_effect"] > 0
    assert not result.judgement.stalled, result.explain()
    assert all(result.reconciled["coverage"]["observed"].values()), "a reader that saw nothing shows nothing"
