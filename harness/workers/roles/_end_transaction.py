"""End a transaction and record it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.contracts import Outcome, Transactional
from harness.workers.breakpoints import BRIEFLY_S, Moment, Moments


def end_transaction(
    producer: Transactional, did: str, limit_s: float, moments: Moments, record: Callable[..., Any]
) -> tuple[str, Outcome]:
    """End the transaction. A rejected commit is followed by an abort.

    Returns the last request, "commit" or "abort", and its outcome.
    """
    record(step="end", did=did)
    outcome = _commit(producer, limit_s, moments) if did == "commit" else producer.abort(limit_s)
    if outcome is Outcome.REJECTED:
        did = "abort"
        record(step="end", did=did)
        outcome = producer.abort(limit_s)
    record(step="ended", did=did, outcome=outcome)
    return did, outcome


def _commit(producer: Transactional, limit_s: float, moments: Moments) -> Outcome:
    if moments.wanted(Moment.DURING_COMMIT):
        producer.commit(BRIEFLY_S)
        moments.come_to(Moment.DURING_COMMIT)
    return producer.commit(limit_s)
