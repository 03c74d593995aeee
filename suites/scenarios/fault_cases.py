"""All faults under load: each fault on the nodes where it matters, in each mode that it concerns. Pure data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from faults.add_partitions import AddPartitions
from faults.broken_disk import BrokenDisk
from faults.delete_records import DeleteRecords
from faults.fence_producer import FenceProducer
from faults.flaky_link import FlakyLink
from faults.flip_bits import FlipBits
from faults.full_disk import FullDisk
from faults.hold_requests import HoldRequests
from faults.kill import Kill
from faults.kill_worker import KillWorker
from faults.pause import Pause
from faults.pause_worker import PauseWorker
from faults.power_loss import PowerLoss
from faults.reassign import Reassign
from faults.rebalance import Rebalance
from faults.restart import Restart
from faults.rolling_restart import RollingRestart
from faults.sever import Sever
from faults.short_retention import ShortRetention
from faults.skew_clock import SkewClock
from faults.slow_disk import SlowDisk
from faults.slow_link import SlowLink
from faults.starve import Starve
from faults.transfer_leadership import TransferLeadership
from faults.truncate_log import TruncateLog
from faults.unclean_election import UncleanElection
from harness.contracts import Direction, Mode, TopicSettings, Verdict
from harness.scenario import Scenario
from harness.schedule import Schedule, once, together
from harness.targets import (
    active_controller,
    consumer,
    every_broker,
    follower_of,
    group_coordinator,
    leader_of,
    minority,
    producer,
    transaction_coordinator,
)

AFTER_S = 0.5
ACKED = (Mode.AT_LEAST_ONCE, Mode.IDEMPOTENT, Mode.EXACTLY_ONCE)
NOT_TRANSACTIONAL = (Mode.AT_LEAST_ONCE, Mode.IDEMPOTENT)
TRANSACTIONAL = (Mode.EXACTLY_ONCE,)


@dataclass(frozen=True)
class Case:
    schedule: Schedule
    modes: tuple[Mode, ...] = ACKED
    settings: Mapping[str, Any] = field(default_factory=dict)  # further fields of the scenario


def _held(fault: Any, on: Any, hold_s: float = 1.5) -> Schedule:
    return once(fault, on=on, after_s=AFTER_S, hold_s=hold_s)


LEADER, FOLLOWER = leader_of(0), follower_of(0)
CASES: Mapping[str, Case] = {
    # processes
    "kill": Case(_held(Kill(), LEADER)),
    "kill-minority": Case(_held(Kill(), minority(1))),
    "kill-controller": Case(_held(Kill(), active_controller())),
    "kill-group_coordinator": Case(_held(Kill(), group_coordinator())),
    "kill-transaction_coordinator": Case(_held(Kill(), transaction_coordinator(1)), TRANSACTIONAL),
    "restart": Case(_held(Restart(), LEADER)),
    "rolling_restart": Case(_held(RollingRestart(), every_broker(), 0.5)),
    "pause": Case(_held(Pause(), LEADER)),
    "starve": Case(_held(Starve(), LEADER, 3.0)),
    "starve-memory": Case(_held(Starve(memory_mb=8), LEADER, 3.0)),
    "skew_clock": Case(_held(SkewClock(), LEADER, 3.0)),
    "skew_clock-back": Case(_held(SkewClock(offset_s=-600.0), every_broker(), 3.0)),
    # links
    "sever": Case(_held(Sever(), LEADER)),
    "sever-requests": Case(_held(Sever(direction=Direction.REQUESTS), LEADER)),
    "sever-replication": Case(_held(Sever("replication"), LEADER)),
    "sever-answers": Case(_held(Sever("answers"), LEADER)),
    "sever-halves": Case(_held(Sever("halves"), LEADER)),
    "sever-ring": Case(_held(Sever("ring"), LEADER)),
    "sever-bridge": Case(_held(Sever("bridge"), LEADER)),
    "sever-clients": Case(_held(Sever("clients"), LEADER)),
    "sever-controllers": Case(_held(Sever("controllers"), LEADER)),
    "slow_link": Case(_held(SlowLink(), LEADER, 3.0)),
    "slow_link-rate": Case(_held(SlowLink(latency_ms=0, rate_kb_s=64), LEADER, 3.0)),
    "flaky_link": Case(_held(FlakyLink(), LEADER)),
    "flaky_link-close_after": Case(_held(FlakyLink("close_after"), LEADER)),
    "flaky_link-half_open": Case(_held(FlakyLink("half_open"), LEADER)),
    "hold_requests-Produce": Case(_held(HoldRequests(("Produce",)), LEADER), NOT_TRANSACTIONAL),
    "hold_requests-EndTxn": Case(_held(HoldRequests(("EndTxn",)), transaction_coordinator(1)), TRANSACTIONAL),
    # disks
    "slow_disk": Case(_held(SlowDisk(), LEADER, 2.5)),
    "slow_disk-fsync": Case(_held(SlowDisk(harm="fsync"), LEADER, 2.5)),
    "slow_disk-read": Case(_held(SlowDisk(harm="read"), LEADER, 2.5)),
    "full_disk": Case(_held(FullDisk(), LEADER)),
    "broken_disk": Case(_held(BrokenDisk(), LEADER)),
    "broken_disk-one_folder": Case(_held(BrokenDisk(folder=2), LEADER)),
    "power_loss": Case(_held(PowerLoss(), LEADER)),
    "truncate_log": Case(_held(TruncateLog(), FOLLOWER)),
    "flip_bits": Case(_held(FlipBits(), FOLLOWER)),
    # operators
    "transfer_leadership": Case(_held(TransferLeadership(), LEADER)),
    "reassign": Case(_held(Reassign(), LEADER)),
    "add_partitions": Case(_held(AddPartitions(), LEADER)),
    "delete_records": Case(_held(DeleteRecords(), LEADER)),
    "short_retention": Case(_held(ShortRetention(), LEADER)),
    # clients
    "kill_worker-producer": Case(_held(KillWorker(), producer(1))),
    "kill_worker-consumer": Case(_held(KillWorker(), consumer(1))),
    "pause_worker-producer": Case(_held(PauseWorker(), producer(1))),
    "pause_worker-consumer": Case(_held(PauseWorker(), consumer(1))),
    "skew_clock-producer": Case(_held(SkewClock(), producer(1), 3.0)),
    "skew_clock-consumer": Case(_held(SkewClock(offset_s=-600.0), consumer(1), 3.0)),
    "fence_producer": Case(_held(FenceProducer(), producer(1)), TRANSACTIONAL),
    "rebalance": Case(_held(Rebalance(), consumer(1))),
    # three at once
    "three_at_once": Case(
        together((SlowDisk(), FOLLOWER), (SlowLink(), LEADER), (Pause(), LEADER), after_s=AFTER_S, hold_s=1.5)
    ),
}

# Faults that no mode survives, by design: the harness has to find the loss. Both measure that records are gone which other
# clients had read. Other records get their offsets, and readers that had read beyond the new end go back or miss records.
TRUNCATED = ("offset_conflict", "rewound", "skipped", "undelivered")
CONTROLS = (
    Scenario(
        name="control-power_loss-everywhere", mode=Mode.AT_LEAST_ONCE, expected=Verdict.VIOLATED, requires={"lost": 1},
        # The committed offsets of the group are lost as well.
        tolerates=(*TRUNCATED, "overcommitted"),
        control=True, schedule=_held(PowerLoss(), every_broker(), 1.0),
    ),
    Scenario(
        name="control-unclean_election", mode=Mode.AT_LEAST_ONCE, expected=Verdict.VIOLATED, requires={"lost": 1},
        tolerates=TRUNCATED, control=True, topic=TopicSettings(min_insync_replicas=1),
        schedule=_held(UncleanElection(), FOLLOWER, 1.0),
    ),
)  # fmt: skip


def scenarios() -> Iterator[Scenario]:
    """Yield each fault in each mode that it concerns; all have to be HELD."""
    for name, case in CASES.items():
        for mode in case.modes:
            yield Scenario(name=f"{mode}-{name}", mode=mode, schedule=case.schedule, **case.settings)
