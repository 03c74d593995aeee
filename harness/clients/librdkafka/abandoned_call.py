"""Make a call that may never return, whatever limit it is given: in another thread, and give it up after a limit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


def call_or_give_up(call: Callable[[], object], limit_s: float) -> bool:
    """Return True if the call returns in time, False if not. An exception of the call is raised here.

    A call that is given up goes on in a daemon thread. Do not use the objects that it uses any more: make new ones.
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
