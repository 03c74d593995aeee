"""Lines of progress: they are escaped, and a terminal that is gone does not end the command."""

from __future__ import annotations

import io
import sys

import pytest

from harness.commands._progress import Progress

EVIL = "a\x1b[2J\r\nonceproof: HELD\u202eb"  # clears the screen, begins a line, writes right to left


def test_progress_escapes_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    progress = Progress(1)
    progress.begin(1, EVIL)
    progress.show(EVIL, EVIL)
    progress.note(EVIL)
    written = stderr.getvalue()
    assert written.count("\n") == 2
    assert all(line.isprintable() for line in written.splitlines())


def test_a_closed_terminal_is_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:  # TRUST R2
    class Gone(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stderr", Gone())
    progress = Progress(1)
    progress.show("s", "undoing kill on broker-2 …")
    progress.note("undone")
    progress.close()
