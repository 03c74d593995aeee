"""The scenarios of `prove`: every mode crossed with every fault, and the controls. Pure data.

A control shows that the harness is not blind: it has to be VIOLATED, by the anomaly that it names. Runs without faults show
that there are no false alarms: they have to be HELD.
"""

from __future__ import annotations

from dataclasses import replace

from faults.kill import Kill
from faults.sever import Sever
from faults.slow_disk import SlowDisk
from harness.contracts import Mode
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios import hazards

MODES = (Mode.AT_MOST_ONCE, Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE)

KILL_LEADER = once(Kill(), on=leader_of(0), after_s=0.5, hold_s=1.0)
# The leader dies with records that it never read. With acks=0 they count as acked and are lost, whatever the timing.
KILL_LEADER_UNREAD = once(Kill(unread=1000), on=leader_of(0), after_s=0.5, hold_s=1.0)
SEVER_LEADER = once(Sever(), on=leader_of(0), after_s=0.5, hold_s=1.5)
SLOW_DISK_OF_LEADER = once(SlowDisk(delay_ms=50), on=leader_of(0), after_s=0.5, hold_s=2.5)
FAULTS = {"kill-leader": KILL_LEADER, "sever-leader": SEVER_LEADER, "slow_disk-leader": SLOW_DISK_OF_LEADER}


def crossed(mode: Mode, fault: str) -> Scenario:
    """Return a mode under a fault; it has to be HELD. At-most-once under a kill has to lose records, which are allowed and counted.

    Under the other faults at-most-once need not lose any: the losses of a cut depend on when the client switches to the new
    leader, and a slow disk may lose nothing.
    """
    if (mode, fault) == (Mode.AT_MOST_ONCE, "kill-leader"):
        return Scenario(name=f"{mode}-{fault}", mode=mode, schedule=KILL_LEADER_UNREAD, requires={"lost": 1})
    return Scenario(name=f"{mode}-{fault}", mode=mode, schedule=FAULTS[fault])


def fault_free(mode: Mode) -> Scenario:
    return Scenario(name=f"{mode}-none", mode=mode, control=True, produce_s=3.0)


HAZARDS = hazards.of_prove()
QUICK = tuple(crossed(mode, "kill-leader") for mode in MODES)
FULL = (
    *(fault_free(mode) for mode in MODES),
    *(crossed(mode, fault) for fault in FAULTS for mode in MODES),
    *HAZARDS,
)


def seeded(scenarios: tuple[Scenario, ...], seed: int) -> list[Scenario]:
    """Return the scenarios with seeds derived from `seed`, a different one for each."""
    return [replace(s, seed=seed * 100 + number) for number, s in enumerate(scenarios)]
