"""The scenarios of `prove`: every mode crossed with every fault, and the controls. Pure data.

A control shows that the harness sees: it has to be VIOLATED. Runs without faults show that it does not cry
wolf: they have to be HELD.
"""

from __future__ import annotations

from dataclasses import replace

from faults.kill import Kill
from faults.sever import Sever
from faults.slow_disk import SlowDisk
from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario
from harness.schedule import once, overlapping
from harness.targets import every_broker, leader_of

MODES = (Mode.AT_MOST_ONCE, Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE)

KILL_LEADER = once(Kill(), on=leader_of(0), after_s=0.5, hold_s=1.0)
SEVER_LEADER = once(Sever(), on=leader_of(0), after_s=0.5, hold_s=1.5)
SLOW_DISK_OF_LEADER = once(SlowDisk(delay_ms=50), on=leader_of(0), after_s=0.5, hold_s=2.5)
FAULTS = {"kill-leader": KILL_LEADER, "sever-leader": SEVER_LEADER, "slow_disk-leader": SLOW_DISK_OF_LEADER}


def crossed(mode: Mode, fault: str) -> Scenario:
    """A mode under a fault; it has to be HELD."""
    return Scenario(name=f"{mode}-{fault}", mode=mode, schedule=FAULTS[fault])


def fault_free(mode: Mode) -> Scenario:
    return Scenario(name=f"{mode}-none", mode=mode, control=True, produce_s=3.0)


# acks=0 counts as acked what only left the client (HAZARDS acks0_loss): judged as at-least-once that is loss.
ACKS0_LOSS = Scenario(
    name="control-acks0_loss",
    mode=Mode.AT_MOST_ONCE,
    judged_as=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    control=True,
    hazard="acks0_loss",
    schedule=KILL_LEADER,
    producers=ProducerSettings(records_per_s=3000),
)
# acks=1 while nobody replicates from the leader, which is then killed: what it acked dies with it.
ACKS1_FAILOVER = Scenario(
    name="control-acks1_failover",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    control=True,
    hazard="acks1_failover",
    schedule=overlapping(
        once(Sever(shape="replication"), on=leader_of(0), after_s=0.5, hold_s=4.0),
        once(Kill(), on=leader_of(0), after_s=3.0, hold_s=1.5),
    ),
    producers=ProducerSettings(extra={"acks": "1"}),
)
# Answers get lost, the client gives up waiting and sends again what is written already.
RETRY_DUPLICATES = Scenario(
    name="control-retry_duplicates",
    mode=Mode.AT_LEAST_ONCE,
    judged_as=Mode.EXACTLY_ONCE,
    expected=Verdict.VIOLATED,
    control=True,
    hazard="retry_duplicates",
    schedule=once(Sever(shape="answers"), on=every_broker(), after_s=0.5, hold_s=3.0),
    producers=ProducerSettings(extra={"socket.timeout.ms": 1000, "request.timeout.ms": 1000}),
)
# The readers were promised read_committed and are configured otherwise.
ABORTED_UNCOMMITTED = Scenario(
    name="control-aborted_uncommitted",
    mode=Mode.EXACTLY_ONCE,
    expected=Verdict.VIOLATED,
    control=True,
    hazard="aborted_uncommitted",
    produce_s=3.0,
    producers=ProducerSettings(aborted_share=0.5),
    consumers=ConsumerSettings(extra={"isolation.level": "read_uncommitted"}),
)
HAZARDS = (ACKS0_LOSS, ACKS1_FAILOVER, RETRY_DUPLICATES, ABORTED_UNCOMMITTED)
QUICK = tuple(crossed(mode, "kill-leader") for mode in MODES)
FULL = (
    *(fault_free(mode) for mode in MODES),
    *(crossed(mode, fault) for fault in FAULTS for mode in MODES),
    *HAZARDS,
)


def seeded(scenarios: tuple[Scenario, ...], seed: int) -> list[Scenario]:
    """The same scenarios with another seed, each with its own."""
    return [replace(s, seed=seed * 100 + number) for number, s in enumerate(scenarios)]
