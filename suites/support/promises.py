"""What several suites ask of a run."""

from __future__ import annotations

from harness.campaign import Result
from harness.contracts import Verdict


def keeps_its_effects(result: Result) -> None:
    """A pipeline kept its promise, and enough was looked at to say so."""
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.reconciled["compared"]["missing_effect"] > 0
    assert not result.judgement.stalled, result.explain()
    assert all(result.reconciled["coverage"]["observed"].values()), "a reader that saw nothing shows nothing"
