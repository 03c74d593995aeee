"""What is known of an attempt, how clients run, and what a run proves."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Outcome(IntEnum):
    """What is known about an attempt, a commit or the end of a transaction. Unknown is an answer."""

    UNKNOWN = 0
    ACKED = 1
    REJECTED = 2  # certainly not written


class Mode(StrEnum):
    """A delivery mode: how clients run, and which anomalies are forbidden then (harness.guarantees)."""

    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    IDEMPOTENT = "idempotent"
    EXACTLY_ONCE = "exactly_once"


class Verdict(StrEnum):
    """VIOLATED outweighs INCONCLUSIVE, which outweighs HELD."""

    HELD = "HELD"
    VIOLATED = "VIOLATED"
    INCONCLUSIVE = "INCONCLUSIVE"
