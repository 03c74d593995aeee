"""Signals that end a command: SIGTERM and SIGHUP act like Ctrl-C, and none of them interrupts the undoing of faults.

Handlers belong to the main thread. In other threads the contexts below do nothing: Python runs handlers in the main
thread only, so no signal raises anything there.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Handler = Callable[[int, FrameType | None], object]


def install() -> None:
    """Make SIGTERM and SIGHUP raise KeyboardInterrupt, as SIGINT does by default.

    An ignored signal stays ignored, as nohup and background jobs of a shell need it.
    """
    if not _in_main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)


def interrupt(number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt with the name of the signal."""
    raise KeyboardInterrupt(signal.Signals(number).name)


@contextmanager
def deferred() -> Iterator[None]:
    """Delay signals until the end of the block; then the first one takes effect, however many came."""
    waiting: list[int] = []
    try:
        with _handled(lambda number, frame: waiting.append(number)):
            yield
    finally:
        if waiting:
            signal.raise_signal(waiting[0])


@contextmanager
def only_first() -> Iterator[None]:
    """Let the first signal raise KeyboardInterrupt and ignore all later ones until the end of the block.

    So the handling of the interruption (finally, except) is not interrupted itself.
    """
    raised = False

    def raise_once(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        if not raised:
            raised = True
            interrupt(number, frame)

    with _handled(raise_once):
        yield


@contextmanager
def _handled(handler: _Handler) -> Iterator[None]:
    """Handle all signals of ENDING, except ignored ones, by `handler`; restore the old handlers at the end."""
    if not _in_main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    handled = [number for number, old in before.items() if old is not signal.SIG_IGN]
    try:
        for number in handled:
            signal.signal(number, handler)
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
