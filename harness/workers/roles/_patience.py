"""Growing pauses between lost producers, and a limit after which the worker fails."""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.contracts import Outcome
from harness.errors import OnceproofError
from harness.ledger.journal import Ledger
from harness.workers.producer_session import Session

MOST_IN_A_ROW = 30
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0  # with MOST_IN_A_ROW: about two minutes, longer than any fault of a run lasts
_LOOK_EVERY_S = 0.05


class Patience:
    """Records the lost producers of one worker, and waits before the next one.

    The first loss after an acked record costs no time, as when a producer is fenced. Losses without an acked record in between
    are followed by a pause that doubles up to LONGEST_PAUSE_S; after MOST_IN_A_ROW of them the worker fails.
    """

    def __init__(self, name: str, ledger: Ledger, until: Callable[[], bool]) -> None:
        self._name, self._ledger, self._until = name, ledger, until
        self._in_a_row = 0

    def ended(self, session: Session, lost: Exception | None) -> None:
        """Record the loss, if there is one, and return when the next producer may be opened or the worker has to stop."""
        if lost is None:
            self._in_a_row = 0
            return
        self._ledger.events.write("lost_producer", session=session.number, text=str(lost))
        self._in_a_row = 1 if session.journal.outcomes[Outcome.ACKED] else self._in_a_row + 1
        if self._in_a_row >= MOST_IN_A_ROW:
            raise OnceproofError(
                f"{self._name} lost {self._in_a_row} producers in a row without an acked record, the last one by: {lost}; "
                "see the logs of the brokers"
            )
        wake = time.monotonic() + self.pause_s
        while time.monotonic() < wake and not self._until():
            time.sleep(min(_LOOK_EVERY_S, max(0.0, wake - time.monotonic())))

    @property
    def pause_s(self) -> float:
        """The pause before the next producer."""
        if self._in_a_row < 2:
            return 0.0
        return float(min(FIRST_PAUSE_S * 2 ** (self._in_a_row - 2), LONGEST_PAUSE_S))
