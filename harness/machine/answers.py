"""The answers of the doctor's looks: yes or no, with the reason."""

from __future__ import annotations

from dataclasses import dataclass

LOOK_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class Answer:
    """Yes or no, the reason, and for a no whether the set-up would fetch the thing."""

    ok: bool
    reason: str
    fetchable: bool = False


def yes(reason: str) -> Answer:
    """Return an answer that says yes."""
    return Answer(True, reason)


def no(reason: str, *, fetchable: bool = False) -> Answer:
    """Return an answer that says no."""
    return Answer(False, reason, fetchable)
