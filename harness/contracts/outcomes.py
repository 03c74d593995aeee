"""Outcomes of attempts, delivery modes of clients, and verdicts of runs."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Outcome(IntEnum):
    """The known outcome of an attempt, a commit or the end of a transaction. UNKNOWN is a valid outcome."""

    UNKNOWN = 0
    ACKED = 1
    REJECTED = 2  # certainly not written


class Mode(StrEnum):
    """A delivery mode: it sets the clients' settings and the forbidden anomalies (harness.guarantees)."""

    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    IDEMPOTENT = "idempotent"
    EXACTLY_ONCE = "exactly_once"


class Verdict(StrEnum):
    """The verdict on a run. VIOLATED outweighs INCONCLUSIVE, which outweighs HELD."""

    HELD = "HELD"
    VIOLATED = "VIOLATED"
    INCONCLUSIVE = "INCONCLUSIVE"
