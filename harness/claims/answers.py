"""The answers of claims as data: the object that `--json` prints and that the page of claims shows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from harness.claims.claim import ClaimAnswer, Curve, Observation


def as_data(answers: Sequence[ClaimAnswer]) -> dict[str, object]:
    """Return what --json prints."""
    return {
        "claims": [_row(each) for each in answers],
        "as_expected": sum(each.as_expected for each in answers),
        "claims_total": len(answers),
    }


def _row(answer: ClaimAnswer) -> dict[str, object]:
    return {
        "id": answer.claim.id,
        "claim": answer.claim.statement,
        "expected": answer.claim.expected_text,
        "result": answer.text,
        "as_expected": answer.as_expected,
        "why": answer.claim.why,
        "setting": answer.claim.setting,
        "evidence": [_evidence(each) for each in answer.seen.observations],
        "curves": [_curve(each) for each in answer.seen.curves],
        "seconds": round(answer.seconds, 1),
    }


def _evidence(seen: Observation) -> dict[str, object]:
    return {
        "situation": seen.situation,
        "part": seen.part,
        "holds": seen.holds,
        "numbers": seen.evidence,
        "run_dir": None if seen.run is None else str(seen.run),
    }


def _curve(curve: Curve) -> dict[str, object]:
    return {"x": curve.x, "y": curve.y, "points": [list(point) for point in curve.points]}
