"""All faults under load, in each mode that they concern. Pure data: the cases are `cases` at the end of each file of `faults/`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from faults.pause import Pause
from faults.slow_disk import SlowDisk
from faults.slow_link import SlowLink
from harness import registry
from harness.contracts import Mode
from harness.scenario import Scenario
from harness.schedule import once, together
from harness.targets import follower_of, leader_of

AFTER_S = 0.5
ACKED = (Mode.AT_LEAST_ONCE, Mode.IDEMPOTENT, Mode.EXACTLY_ONCE)
THREE_AT_ONCE = together(
    (SlowDisk(), follower_of(0)),
    (SlowLink(), leader_of(0)),
    (Pause(), leader_of(0)),
    after_s=AFTER_S,
    hold_s=1.5,
)

# Found beside the loss where a log became shorter: other records get the offsets of the lost ones, and readers that had read
# beyond the new end go back or miss records.
TRUNCATED = ("offset_conflict", "rewound", "skipped", "undelivered")


def scenarios() -> Iterator[Scenario]:
    """Yield each case of each fault in each of its modes, and three faults at once; all have to be HELD."""
    for fault in registry.names("fault"):
        for case in import_module(registry.load("fault", fault).__module__).cases:
            schedule = once(case.fault, on=case.on, after_s=AFTER_S, hold_s=case.hold_s)
            for mode in case.modes:
                yield Scenario(name=f"{mode}-{case.word}", mode=mode, schedule=schedule)
    for mode in ACKED:
        yield Scenario(name=f"{mode}-three_at_once", mode=mode, schedule=THREE_AT_ONCE)
