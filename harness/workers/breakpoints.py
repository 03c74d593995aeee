"""Stop a worker at a chosen moment of its work: it waits there until it is killed or released.

The harness writes the moment into a file beside the worker's board. When the worker comes to that moment it renames the
file, so that the harness sees it, and waits as long as the renamed file exists. Without a request, a moment costs the
worker one check for a file that does not exist.
"""

from __future__ import annotations

import os
import time
from enum import StrEnum
from pathlib import Path

_LOOK_EVERY_S = 0.005
BRIEFLY_S = 0.001  # a limit that is long enough to send a request, too short for its answer


class Moment(StrEnum):
    """A moment inside a transaction, or in the work of a member of a group."""

    AFTER_PRODUCE = "after_produce"  # its records are in the log
    AFTER_SEND_OFFSETS = "after_send_offsets"
    DURING_COMMIT = "during_commit"  # asked for, and not answered yet
    AFTER_COMMIT = "after_commit"  # answered; offsets that are committed separately are not committed yet
    # In transactions that will end in a known way:
    MIDWAY_TO_COMMIT = "midway_to_commit"  # records are in the log; more of them, or the offsets, will follow
    MIDWAY_TO_ABORT = "midway_to_abort"
    BEFORE_COMMIT = "before_commit"  # it will be asked for next
    BEFORE_ABORT = "before_abort"
    AFTER_ABORT = "after_abort"  # answered; the next transaction has not begun
    # In a member of a group:
    BEFORE_WORK = "before_work"  # it was given records, and has not worked on them yet
    AFTER_WORK = "after_work"  # it has worked on records, and has not committed them yet


OF_EVERY_COMMIT = (
    Moment.AFTER_PRODUCE,
    Moment.AFTER_SEND_OFFSETS,
    Moment.DURING_COMMIT,
    Moment.AFTER_COMMIT,
)


def midway(did: str) -> Moment:
    """Return the moment inside a transaction that will end by `did`: commit or abort."""
    return Moment(f"midway_to_{did}")


def before(did: str) -> Moment:
    return Moment(f"before_{did}")


class Moments:
    """Both sides of the files: a worker comes to moments, the harness asks it to stop at one."""

    def __init__(self, board: Path) -> None:
        self._asked = str(board) + ".stop_at"
        self._reached = str(board) + ".stopped_at"

    # called by the worker

    def come_to(self, moment: Moment) -> None:
        """Wait here if the harness has asked for this moment."""
        if not self.wanted(moment):
            return
        try:
            os.rename(self._asked, self._reached)  # noqa: PTH104  # paths as text: on the way of every transaction
        except FileNotFoundError:
            return  # the harness has withdrawn the request in between
        while os.path.exists(self._reached):  # noqa: PTH110
            time.sleep(_LOOK_EVERY_S)

    def wanted(self, moment: Moment) -> bool:
        if not os.path.exists(self._asked):  # noqa: PTH110
            return False
        try:
            return Path(self._asked).read_text(encoding="ascii") == moment
        except FileNotFoundError:
            return False

    # called by the harness

    def stop_at(self, moment: Moment) -> None:
        """Ask the worker to stop at the next `moment`.

        If it is waiting at another moment, it resumes only after this request is in place.
        """
        # Without a request the worker cannot come to a stop, so whether it waits is decided before the new request. If that
        # were asked afterwards, a worker that comes to the moment at once would be released again, and the request lost.
        Path(self._asked).unlink(missing_ok=True)
        waits_elsewhere = self.reached()
        draft = Path(self._asked + ".part")
        draft.write_text(moment, encoding="ascii")
        draft.replace(self._asked)
        if waits_elsewhere:
            Path(self._reached).unlink(missing_ok=True)

    def reached(self) -> bool:
        return Path(self._reached).exists()

    def go_on(self) -> None:
        """Release the worker, or withdraw the request. Does nothing if there is no request."""
        for name in (self._asked, self._reached):
            Path(name).unlink(missing_ok=True)


class _NoMoments(Moments):
    def __init__(self) -> None:
        super().__init__(Path())

    def come_to(self, moment: Moment) -> None:
        pass

    def wanted(self, moment: Moment) -> bool:
        return False


NO_MOMENTS = _NoMoments()  # for work in which the worker must not stop
