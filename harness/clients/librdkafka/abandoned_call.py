"""Calls that may never return, whatever limit they are given: they are made elsewhere, and given up."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


def call_or_give_up(call: Callable[[], object], limit_s: float) -> bool:
    """Whether it has returned in time; what it raises is raised here.

    One that is given up goes on in a thread that nobody waits for, not even the end of the process. Whatever it holds is to
    be left to it: make a new one.
    """
    ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # raised again where it was called from
            ended.put(error)
        else:
            ended.put(None)

    threading.Thread(target=run, name="onceproof-call", daemon=True).start()
    try:
        raised = ended.get(timeout=limit_s)
    except queue.Empty:
        return False
    if raised is not None:
        raise raised
    return True
