"""How a worker ends a transaction, and what it tells of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.contracts import Outcome, Transactional
from harness.workers.breakpoints import BRIEFLY_S, Moment, Moments


def end_transaction(
    producer: Transactional, did: str, limit_s: float, moments: Moments, tell: Callable[..., Any]
) -> tuple[str, Outcome]:
    """What was done in the end, commit or abort, and what became of it. A commit that is refused is made an abort."""
    tell(step="end", did=did)
    outcome = _commit(producer, limit_s, moments) if did == "commit" else producer.abort(limit_s)
    if outcome is Outcome.REJECTED:
        did = "abort"
        tell(step="end", did=did)
        outcome = producer.abort(limit_s)
    tell(step="ended", did=did, outcome=outcome)
    return did, outcome


def _commit(producer: Transactional, limit_s: float, moments: Moments) -> Outcome:
    if moments.wanted(Moment.DURING_COMMIT):
        producer.commit(BRIEFLY_S)
        moments.come_to(Moment.DURING_COMMIT)
    return producer.commit(limit_s)
