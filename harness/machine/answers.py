"""The single looks of the doctor: each answers yes or no with the reason, quickly and without a trace."""

from __future__ import annotations

from dataclasses import dataclass

LOOK_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class Answer:
    """Yes or no, why, and for a no whether the set-up would fetch the thing."""

    ok: bool
    reason: str
    fetchable: bool = False


def yes(reason: str) -> Answer:
    """It is there."""
    return Answer(True, reason)


def no(reason: str, *, fetchable: bool = False) -> Answer:
    """It is not there."""
    return Answer(False, reason, fetchable)
