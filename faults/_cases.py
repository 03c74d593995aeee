"""The cases of a fault for `suites/test_faults.py`: where it is held under load, for how long, in which modes."""

from __future__ import annotations

from dataclasses import dataclass

from harness.contracts import Fault, Mode
from harness.targets import Target

ACKED = (Mode.AT_LEAST_ONCE, Mode.IDEMPOTENT, Mode.EXACTLY_ONCE)
NOT_TRANSACTIONAL = (Mode.AT_LEAST_ONCE, Mode.IDEMPOTENT)
TRANSACTIONAL = (Mode.EXACTLY_ONCE,)


@dataclass(frozen=True)
class Case:
    """One fault on one target; each of the modes has to be HELD under it."""

    fault: Fault
    on: Target
    hold_s: float = 1.5
    modes: tuple[Mode, ...] = ACKED
    name: str = ""  # default: the fault's own; set it if the target or a setting makes the difference

    @property
    def word(self) -> str:
        """The name of the case in scenarios and test ids."""
        return self.name or str(self.fault)
