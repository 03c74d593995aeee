"""The faults and targets that each mode and workload promises to survive, and which of them may overlap.

The plain workload gets the cases of all faults (`cases` in each file of `faults/`), each in its modes. Other workloads get
the faults that destroy nothing, and those of their own workers. `why_not_applicable` (harness/injector.py) decides
whether a drawn scenario can be run on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import combinations

from faults.kill import Kill
from faults.kill_worker import KillWorker
from faults.pause import Pause
from faults.pause_worker import PauseWorker
from faults.restart import Restart
from faults.sever import Sever
from faults.slow_disk import SlowDisk
from faults.slow_link import SlowLink
from faults.starve import Starve
from harness import registry
from harness.contracts import Fault, Mode
from harness.nights.coverage import Combination, with_fault
from harness.scenario import Scenario
from harness.schedule import Window
from harness.targets import (
    Target,
    active_controller,
    copier,
    follower_of,
    group_coordinator,
    leader_of,
    minority,
    output_leader,
    producer,
    some_brokers,
    transaction_coordinator,
)

WORKLOADS: dict[str, tuple[Mode, ...]] = {
    "produce_consume": tuple(Mode),
    "group_churn": (Mode.AT_MOST_ONCE, Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE),
    "transactional_copy": (Mode.AT_MOST_ONCE, Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE),
    "dead_letters": (Mode.EXACTLY_ONCE,),
    "transactional_produce": (Mode.EXACTLY_ONCE,),
}
PIPELINES = ("transactional_copy", "dead_letters")

# These only slow or delay: they may overlap with each other and with most other faults.
MILD = frozenset({"slow_disk", "slow_link", "starve", "skew_clock"})
# They end the process of a broker, and with it the way in which some slow it down; a slow link is outside of it.
ENDS_A_BROKER = frozenset({"kill", "restart", "rolling_restart", "broken_disk", "full_disk"})
# Broker faults that destroy nothing and change neither topics nor the cluster: every workload has to survive them.
COMMON = MILD | {
    "kill", "pause", "restart", "rolling_restart", "sever", "flaky_link", "transfer_leadership", "reassign",
}  # fmt: skip
WORKERS = frozenset({"kill_worker", "pause_worker", "stall_worker", "rebalance"})
# They need the whole cluster, or leave topics and the cluster changed: nothing else is held in the same run.
ALONE = frozenset(
    {"wipe_disk", "lower_feature", "rolling_upgrade", "truncate_log", "flip_bits", "power_loss"}
)
# With acks=0 and without retries these lose records, which the mode allows; it promises nothing about other faults.
AT_MOST_ONCE = frozenset({"kill", "pause", "restart", "sever", "transfer_leadership", "kill_worker"}) | MILD


@dataclass(frozen=True)
class Blow:
    """A fault on a target, and the shortest time for which it is held."""

    fault: Fault
    on: Target
    hold_s: float = 1.5

    @property
    def name(self) -> str:
        """The name of the fault, as users type it."""
        return str(self.fault.describe()["fault"])

    @property
    def role(self) -> str:
        return self.on.role


@cache
def blows(mode: Mode, workload: str) -> tuple[Blow, ...]:
    """Return all faults on targets that this mode survives in this workload, in a fixed order."""
    found = list(_of_cases(mode, workload))
    found += [blow for blow in _more(mode, workload) if blow not in found]
    return tuple(found)


def _of_cases(mode: Mode, workload: str) -> Iterator[Blow]:
    for name in registry.names("fault"):
        for case in import_module(registry.load("fault", name).__module__).cases:
            asked = mode if mode is not Mode.AT_MOST_ONCE else Mode.AT_LEAST_ONCE
            blow = Blow(case.fault, case.on, case.hold_s)
            if asked in case.modes and _fits(blow, mode, workload):
                yield blow


def _fits(blow: Blow, mode: Mode, workload: str) -> bool:
    if mode is Mode.AT_MOST_ONCE and blow.name not in AT_MOST_ONCE:
        return False
    if workload in PIPELINES and blow.role == "consumer":
        return False  # a pipeline has copiers instead
    if workload == "group_churn" and blow.name in WORKERS and blow.name != "kill_worker":
        return False  # its members come and go by themselves
    return workload == "produce_consume" or blow.name in COMMON | WORKERS


def _more(mode: Mode, workload: str) -> Iterator[Blow]:
    """Yield faults on targets that no case has."""
    for target in (follower_of(0), minority(2), some_brokers(1, 3), group_coordinator()):
        for fault in (Kill(), Pause(), Restart()):
            yield Blow(fault, target)
        yield Blow(SlowDisk(), target, 2.5)
        yield Blow(SlowLink(), target, 3.0)
    yield Blow(Sever(), follower_of(0))
    yield Blow(Starve(), group_coordinator(), 3.0)
    yield Blow(Pause(), active_controller())
    yield Blow(Restart(), active_controller())
    if mode is Mode.EXACTLY_ONCE and workload not in PIPELINES:
        yield Blow(Restart(), transaction_coordinator(1))
        yield Blow(Pause(), transaction_coordinator(1))
    if workload in PIPELINES:
        yield Blow(Kill(), output_leader(0))
        yield Blow(KillWorker(), copier(1))
        yield Blow(PauseWorker(), copier(1), 3.0)
        if mode is Mode.EXACTLY_ONCE:
            yield Blow(Kill(), transaction_coordinator(1, "copier"))
    if mode is not Mode.AT_MOST_ONCE and workload == "produce_consume":
        yield Blow(KillWorker(), producer(2))
        yield Blow(Pause(), leader_of(1), 3.0)


def may_overlap(first: Blow, second: Blow) -> bool:
    """Return True if a mode promises to survive both at once: at most one of them makes a broker unavailable.

    Two worker faults on one worker would undo each other, and so would two faults of one kind on one target.
    """
    names = {first.name, second.name}
    if names & ALONE or len(names) == 1:
        return False
    if mild := names & MILD:
        return not names & ENDS_A_BROKER or mild == {"slow_link"}
    return len(names & WORKERS) == 1


@cache
def possible() -> frozenset[Combination]:
    """Return every pair and triple with a fault that can be drawn, without settings."""
    found: set[Combination] = set()
    for workload, modes in WORKLOADS.items():
        for mode in modes:
            for blow in blows(mode, workload):
                found |= with_fault(str(mode), workload, blow.name, str(blow.on))
    return frozenset(found)


def possible_pairs() -> frozenset[Combination]:
    """Return every pair of a fault with a mode, a workload or a target that can be drawn."""
    return frozenset(each for each in possible() if len(each) == 2 and "fault" in dict(each))


def may_follow(first: Blow, second: Blow) -> bool:
    """Return True if the second fault may begin when the first one has healed."""
    return not ALONE & {first.name, second.name}


def is_promised(scenario: Scenario) -> bool:
    """Return True if this version could draw the faults of the scenario: rules may have changed since it was drawn."""
    if scenario.mode not in WORKLOADS.get(scenario.workload, ()):
        return False
    every = {_key(blow): blow for blow in blows(scenario.mode, scenario.workload)}
    windows = sorted(scenario.schedule, key=lambda each: each.start_s)
    drawn = [every.get(_key(window)) for window in windows]
    return None not in drawn and all(
        (may_overlap if windows[later].start_s < windows[first].end_s else may_follow)(one, other)
        for (first, one), (later, other) in combinations(enumerate(drawn), 2)
        if one and other
    )


def _key(one: Blow | Window) -> str:
    return str((sorted(one.fault.describe().items()), sorted(one.on.describe().items())))
