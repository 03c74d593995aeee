"""Looks that are repeated in a thread of their own while a run goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from harness.errors import OnceproofError

_LAST_LOOK_LIMIT_S = 30.0


@contextmanager
def repeatedly(look: Callable[[], None], every_s: float, name: str) -> Iterator[None]:
    """Call `look` at once and then every `every_s` seconds until the `with` ends.

    A look that fails is left out: what is recorded here never decides a verdict, and a later look shows the change.
    """
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            with suppress(OnceproofError, OSError):
                look()
            stop.wait(every_s)

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_LAST_LOOK_LIMIT_S)
