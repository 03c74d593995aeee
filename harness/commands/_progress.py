"""Live progress on stderr: one changing line on a terminal, otherwise one line for each event."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from harness.expectation import complaint, requirement_text
from harness.runtime.terminal import printable

if TYPE_CHECKING:
    from harness.campaign import Result

WIDTH = 110


class Progress:
    def __init__(self, total: int) -> None:
        self._total = total
        self._began = time.monotonic()
        self._prefix = ""
        self._line = ""
        self._lock = threading.Lock()
        self._tty = sys.stderr.isatty()

    def begin(self, number: int, scenario: str) -> None:
        self._prefix = f"[{number:2}/{self._total}] "

    def show(self, scenario: str, text: str) -> None:
        """Show the current step; on a terminal it replaces the previous one."""
        self._print(f"{self._prefix}{scenario}: {text}", lasting=not self._tty)

    def note(self, text: str) -> None:
        """Print a line that stays on the screen."""
        self._print(text, lasting=True)

    def done(self, future: Future[Result]) -> None:
        if future.cancelled() or future.exception():
            return  # reported by the caller that waits for the result
        result = future.result()
        judgement = result.judgement
        why = complaint(judgement.verdict, judgement.expected, judgement.shortfalls)
        mark = "as expected" if judgement.as_expected else f"NOT as expected ({why})"
        if judgement.required:
            mark += f", {requirement_text(judgement.required, judgement.found)}"
        counts = ", ".join(f"{result.count(n)} {n}" for n in ("acked", "lost", "duplicated", "reordered"))
        self._print(f"{result.scenario.name}: {result.verdict}, {mark}: {counts}", lasting=True)

    def close(self) -> None:
        if self._tty and self._line:
            with suppress(OSError):
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self._line = ""

    def _print(self, text: str, *, lasting: bool) -> None:
        stamped = f"{time.monotonic() - self._began:6.1f}s {printable(text)}"
        # A closed terminal (SIGHUP) is no reason to fail: faults still have to be undone and the report written.
        with self._lock, suppress(OSError):
            if not self._tty:
                sys.stderr.write(stamped + "\n")
            elif lasting:
                sys.stderr.write(f"\r\x1b[K{stamped}\n{self._line}")
            else:
                self._line = stamped[:WIDTH]
                sys.stderr.write(f"\r\x1b[K{self._line}")
            sys.stderr.flush()
