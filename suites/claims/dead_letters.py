"""Claims about messages that cannot be handled."""

from __future__ import annotations

from harness.claims.bench import Bench
from harness.claims.claim import Claim, Measurements, Part, Truth
from suites.claims._runs import outside, provoked
from suites.scenarios import pipelines


def apart_and_never_both(bench: Bench) -> Measurements:
    """Check that every input has one effect, in the output or as a dead letter; two or none are findings."""
    return Measurements.of(
        bench.observed(
            pipelines.pipeline("kill-after_produce", workload="dead_letters"),
            "in one transaction; a member is killed",
        ),
        bench.observed(
            pipelines.pipeline("none", workload="dead_letters"), "in one transaction, no fault", Part.CONTROL
        ),
        outside(
            provoked(
                bench, "crash_before_commit", "without transactions; a member is killed before its commit"
            )
        ),
    )


claims = (
    Claim(
        id="DLQ-1",
        statement="A message that cannot be handled goes to the dead letters, the rest goes on: never both, never neither.",
        expected=Truth.CONDITIONAL, condition="output, dead letter and offset are in one transaction",
        setting="transactional.id, sendOffsetsToTransaction", case=apart_and_never_both,
        why="Otherwise a crash between sending and committing sends both again.",
    ),
)  # fmt: skip
