"""A worker whose wall clock can be set wrong: Skewable, by libfaketime (harness.machine.fake_clock)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.contracts import Skewable, WorkerSpec
from harness.errors import ClusterError
from harness.ledger.journal import EventLog
from harness.ledger.rundir import RunDir
from harness.machine import fake_clock
from harness.schedule import Schedule
from harness.workers.worker import Worker

SHOWN_WITHIN_S = 5.0  # the process shows its clock several times a second


class ClockedWorker(Worker):
    """A worker whose wall clock is wrong. The ledger uses the monotonic clock, which stays right."""

    def __init__(
        self,
        spec: WorkerSpec,
        run: RunDir,
        events: EventLog,
        security: Mapping[str, Any] = {},
        *,
        shown_within_s: float = SHOWN_WITHIN_S,
    ) -> None:
        super().__init__(replace(spec, fake_clock=True), run, events, security)
        self._shown_within_s = shown_within_s
        self._clock = fake_clock.Clock(run.logs / f"{self.name}.clock")

    def start(self) -> None:
        self._clock.write()
        super().start()

    def command(self, spec_file: Path) -> list[str | Path]:
        return self._clock.under(super().command(spec_file))

    # Skewable

    def skew_clock(self, offset_s: float, rate: float = 1.0) -> None:
        self._clock.set(fake_clock.Skew(offset_s, rate, time.time()))

    def right_clock(self) -> None:
        self._clock.right()

    def clock_offset_s(self) -> float:
        """Return the offset of the clock that the process shows on its board."""
        shown = self.board.read_clock()
        age_s = time.monotonic() - shown.at_s
        if not self.running() or age_s > self._shown_within_s:
            raise ClusterError(
                f"{self.name} does not report its clock: it has ended, or was silent for {self._shown_within_s:g} s"
            )
        return shown.wall_minus_monotonic_s - fake_clock.wall_minus_monotonic_s()


def workers_with_clocks(schedule: Schedule) -> set[str]:
    """Return the workers whose clock the schedule sets. Only they run with a fake clock, which costs time."""
    return {window.worker for window in schedule if window.fault.needs is Skewable} - {""}
