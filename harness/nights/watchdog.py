"""A limit for a run that hangs although every wait in it has a limit."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from harness.errors import OnceproofError
from harness.scenario import Scenario
from harness.schedule import length_s

_FAULT_S = 120.0  # for beginning, undoing and proving one fault on a busy machine
_REST_S = 240.0  # for topics, workers, collecting logs


class StuckRun(OnceproofError):
    """A run took longer than its limit and was ended."""


def limit_s(scenario: Scenario) -> float:
    """Return how long a run can take if every step uses its own limit up; only a run that hangs takes longer."""
    timings = scenario.timings
    steps_s = (
        timings.warm_up_limit_s + timings.recovery_limit_s + timings.flush_limit_s
        + timings.drain_limit_s + timings.hanging_limit_s + timings.final_read_limit_s
    )  # fmt: skip
    faults_s = max(length_s(scenario.schedule), scenario.produce_s) + _FAULT_S * len(scenario.schedule)
    return steps_s + faults_s + _REST_S


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """End the block by a signal after so many seconds; faults are undone as after Ctrl-C. Then StuckRun is raised.

    It uses SIGTERM: background jobs of a shell ignore SIGINT.
    """
    lock = threading.Lock()
    over, fired = False, threading.Event()

    def fire() -> None:
        with lock:
            if not over:
                fired.set()
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    timer = threading.Timer(seconds, fire)
    timer.daemon = True
    timer.start()
    try:
        try:
            yield
        finally:
            timer.cancel()
            with lock:
                over = True
    except KeyboardInterrupt as error:
        if not fired.is_set():
            raise
        raise StuckRun(f"the run did not end within {seconds:.0f} s; it was ended") from error
