"""Schedules: pure, seeded data. A window is a fault, its target, the start and the duration."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from enum import Enum
from typing import Any, Protocol

from harness import registry
from harness.contracts import Arena, Fault, Node
from harness.errors import UsageError
from harness.targets import NUMBERED_WORKERS, Target

_QUIET_EVERY = 4  # in a rotating schedule each fourth period has no fault


class Whom(Protocol):
    """A target: picks nodes by metadata that it reads at the moment of use; harness.targets has targets by role."""

    def pick(self, arena: Arena) -> Sequence[Node]: ...
    def describe(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Window:
    """One fault on one target. Seconds count from the end of the warm-up, without the time that faults take to begin and heal.

    `hold_s` begins when the bite was measured, or when measuring it was given up.
    """

    fault: Fault
    on: Whom
    start_s: float
    hold_s: float
    group: str = ""  # windows of one group are undone together, the last that opened first

    def __post_init__(self) -> None:
        if self.start_s < 0 or self.hold_s <= 0:
            raise ValueError(f"window of {self.fault}: start_s >= 0 and hold_s > 0 are needed, "
                             f"not {self.start_s} and {self.hold_s}")  # fmt: skip

    @property
    def end_s(self) -> float:
        return self.start_s + self.hold_s

    @property
    def worker(self) -> str:
        """The name of the worker that the fault is on; empty: it is on nodes of the cluster."""
        target = self.on.describe()
        if target.get("target") in NUMBERED_WORKERS:
            return f"{target['target']}-{target['number']}"
        return str(target["name"]) if target.get("target") == "worker" else ""

    def describe(self) -> dict[str, Any]:
        return {
            "fault": dict(self.fault.describe()),
            "on": dict(self.on.describe()),
            "start_s": self.start_s,
            "hold_s": self.hold_s,
            **({"group": self.group} if self.group else {}),
            # For the judge: records that expire in this window are deleted on purpose.
            **({"deletes": True} if getattr(self.fault, "deletes", False) else {}),
        }


Schedule = tuple[Window, ...]
NO_FAULTS: Schedule = ()


def once(fault: Fault, *, on: Whom, after_s: float = 2.0, hold_s: float = 4.0) -> Schedule:
    """Return one window."""
    return (Window(fault, on, after_s, hold_s),)


def every(period_s: float, fault: Fault, *, on: Whom, hold_s: float, times: int = 3) -> Schedule:
    """Repeat one fault, `period_s` from start to start."""
    return repeat(once(fault, on=on, after_s=period_s, hold_s=hold_s), period_s=period_s, times=times)


def repeat(schedule: Schedule, *, period_s: float, times: int) -> Schedule:
    """Repeat the windows, `period_s` from start to start."""
    span = length_s(schedule) - min((w.start_s for w in schedule), default=0.0)
    if times < 1 or span >= period_s:
        raise ValueError(
            f"repeat at least once, with a period of more than {span:g} s, not {times} times in {period_s:g} s"
        )
    return tuple(later(w, period_s * turn) for turn in range(times) for w in schedule)


def sequence(*schedules: Schedule, pause_s: float = 2.0) -> Schedule:
    """Join schedules in sequence: each begins `pause_s` after the last window of the one before."""
    found: list[Window] = []
    for schedule in schedules:
        start = length_s(tuple(found)) + pause_s if found else 0.0
        found += [later(w, start) for w in schedule]
    return tuple(found)


def overlapping(*schedules: Schedule) -> Schedule:
    """Merge the windows of several schedules on one time line."""
    return tuple(sorted((w for s in schedules for w in s), key=lambda w: w.start_s))


def together(
    *held: tuple[Fault, Whom], after_s: float = 2.0, hold_s: float = 4.0, group: str = "together"
) -> Schedule:
    """Hold several faults at once: each begins when the one before has bitten; they are undone in reverse order."""
    return tuple(Window(fault, on, after_s, hold_s, group) for fault, on in held)


def rotating(
    choices: Sequence[tuple[Fault, Whom]],
    *,
    duration_s: float,
    seed: int,
    period_s: float = 20.0,
    hold_s: float = 8.0,
    at_once: int = 2,
) -> Schedule:
    """Choose up to `at_once` faults at random in each period; each fourth period has none, so that everything can heal."""
    if not choices or not 1 <= at_once <= len(choices) or hold_s >= period_s:
        raise ValueError(
            f"rotating: {len(choices)} choices, at_once {at_once}, hold_s {hold_s:g}, period_s {period_s:g} do not fit"
        )
    chance = random.Random(seed)
    found = []
    for turn in range(int(duration_s // period_s)):
        if turn % _QUIET_EVERY == _QUIET_EVERY - 1:
            continue
        for fault, on in chance.sample(list(choices), chance.randint(1, at_once)):
            start_s = round(turn * period_s + chance.uniform(0, period_s - hold_s), 1)
            found.append(Window(fault, on, start_s, hold_s))
    return tuple(sorted(found, key=lambda w: w.start_s))


def later(window: Window, seconds: float) -> Window:
    return replace(window, start_s=window.start_s + seconds)


def length_s(schedule: Schedule) -> float:
    """Return the end of the last window if every fault bites at once."""
    return max((w.end_s for w in schedule), default=0.0)


# --- replaying ------------------------------------------------------------------------------------


def replayed(described: Sequence[Mapping[str, Any]]) -> Schedule:
    """Return the schedule that a manifest describes."""
    return tuple(
        Window(
            fault_of(w["fault"]),
            Target.of(w["on"]),
            float(w["start_s"]),
            float(w["hold_s"]),
            str(w.get("group", "")),
        )
        for w in described
    )


def fault_of(described: Mapping[str, Any]) -> Fault:
    """Return the fault that a description names, with its settings."""
    settings = {name: value for name, value in described.items() if name != "fault"}
    kind = registry.load("fault", str(described["fault"]))
    known = {field.name: field for field in fields(kind) if field.init}
    if unknown := sorted(settings.keys() - known.keys()):
        there = ", ".join(known) or "none"
        raise UsageError(f"{described['fault']}: unknown setting {unknown[0]!r}; available: {there}")
    fault: Fault = kind(**{name: _typed(value, known[name].default) for name, value in settings.items()})
    return fault


def _typed(value: Any, default: Any) -> Any:
    """Convert a value from JSON, which has neither tuples nor enumerations, to the type of the setting's default."""
    if isinstance(default, Enum):
        return type(default)(value)
    if isinstance(default, tuple) and default is not MISSING:
        return tuple(value)
    return value
