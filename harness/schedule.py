"""When: pure, seeded data. A window says which fault is held on whom, from when and for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.contracts import Arena, Fault, Node


class Target(Protocol):
    """Whom: reads metadata at the moment of use and names nodes."""

    def pick(self, arena: Arena) -> Sequence[Node]: ...
    def describe(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Window:
    """Seconds count from the end of the warm-up. A hold begins when the bite was measured or given up."""

    fault: Fault
    on: Target
    start_s: float
    hold_s: float

    def __post_init__(self) -> None:
        if self.start_s < 0 or self.hold_s <= 0:
            raise ValueError(f"window of {self.fault}: start_s >= 0 and hold_s > 0 are needed, "
                             f"not {self.start_s} and {self.hold_s}")  # fmt: skip

    def describe(self) -> dict[str, Any]:
        return {
            "fault": dict(self.fault.describe()),
            "on": dict(self.on.describe()),
            "start_s": self.start_s,
            "hold_s": self.hold_s,
        }


Schedule = tuple[Window, ...]
NO_FAULTS: Schedule = ()


def once(fault: Fault, *, on: Target, after_s: float = 2.0, hold_s: float = 4.0) -> Schedule:
    """One window."""
    return (Window(fault, on, after_s, hold_s),)


def every(period_s: float, fault: Fault, *, on: Target, hold_s: float, times: int = 3) -> Schedule:
    """The same fault again and again, `period_s` from start to start."""
    if hold_s >= period_s:
        raise ValueError(f"hold_s {hold_s} has to be shorter than the period of {period_s} s")
    return tuple(Window(fault, on, period_s * (i + 1), hold_s) for i in range(times))


def overlapping(*schedules: Schedule) -> Schedule:
    """All windows of several schedules on one time line."""
    return tuple(sorted((w for s in schedules for w in s), key=lambda w: w.start_s))
