"""Ends of worker processes: exit codes and signals, and which of them are errors."""

from __future__ import annotations

import signal
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from harness.workers.main import NO_LEDGER


@dataclass(frozen=True)
class WorkerEnding:
    """The end of one life of a worker: its exit code (negative: a signal) and the signals that the harness had sent to it."""

    code: int
    sent: Collection[int]

    @property
    def state(self) -> str:
        if self.code == 0:
            return "ended"
        return "killed" if -self.code in self.sent else "failed"

    def trouble(self, name: str, ends_by_itself: bool, log: Path, ledger: Path) -> str:
        """Return the error in one line; empty if the worker ended as the harness requested, or as its role does."""
        if self.code < 0:
            mine = -self.code in self.sent
            return (
                ""
                if mine
                else f"worker {name} was ended by {_name_of(-self.code)}, which onceproof did not send"
            )
        if self.code == NO_LEDGER:
            unsaid = f"{ledger}: not writable; free some disk space or choose another folder with --runs"
            return f"worker {name} could not write its ledger: {_last_line(log) or unsaid}"
        if self.code > 0:
            return f"worker {name} failed: {_last_line(log) or 'it printed nothing'} (see {log})"
        if ends_by_itself or signal.SIGTERM in self.sent:
            return ""
        return f"worker {name} stopped before onceproof asked it to (see {log})"


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else ""


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
