"""The scenarios of `prove`: every mode crossed with every fault, and the controls. Pure data.

A control shows that the harness is not blind: it has to be VIOLATED, by the anomaly that it names. Runs without faults show
that there are no false alarms: they have to be HELD.
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
# The leader dies with records that it never read. With acks=0 they count as acked and are lost, whatever the timing.
KILL_LEADER_UNREAD = once(Kill(unread=1000), on=leader_of(0), after_s=0.5, hold_s=1.0)
SEVER_LEADER = once(Sever(), on=leader_of(0), after_s=0.5, hold_s=1.5)
SLOW_DISK_OF_LEADER = once(SlowDisk(delay_ms=50), on=leader_of(0), after_s=0.5, hold_s=2.5)
FAULTS = {"kill-leader": KILL_LEADER, "sever-leader": SEVER_LEADER, "slow_disk-leader": SLOW_DISK_OF_LEADER}
LOST = {"lost": 1}


def crossed(mode: Mode, fault: str) -> Scenario:
    """Return a mode under a fault; it has to be HELD. At-most-once under a kill has to lose records, which are allowed and counted.

    Under the other faults at-most-once need not lose any: the losses of a cut depend on when the client switches to the new
    leader, and a slow disk may lose nothing.
    """
    if (mode, fault) == (Mode.AT_MOST_ONCE, "kill-leader"):
        return Scenario(name=f"{mode}-{fault}", mode=mode, schedule=KILL_LEADER_UNREAD, requires=LOST)
    return Scenario(name=f"{mode}-{fault}", mode=mode, schedule=FAULTS[fault])


def fault_free(mode: Mode) -> Scenario:
    return Scenario(name=f"{mode}-none", mode=mode, control=True, produce_s=3.0)


# At-least-once with acks=0 counts records as acked that only left the client. Its readers are correct: readers of at-most-once
# would lose records as well, by a rebalance, and that would be another anomaly.
ACKS0_LOSS = Scenario(
    name="control-acks0_loss",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires=LOST,
    control=True,
    hazard="acks0_loss",
    schedule=KILL_LEADER_UNREAD,
    producers=ProducerSettings(records_per_s=3000, acks="0", retries=0),
)
# acks=1 while no follower can fetch from the leader, which is then killed: the records that it acked meanwhile are lost. Other
# records get their offsets afterwards.
ACKS1_FAILOVER = Scenario(
    name="control-acks1_failover",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires=LOST,
    tolerates=("offset_conflict",),
    control=True,
    hazard="acks1_failover",
    schedule=overlapping(
        once(Sever(shape="replication"), on=leader_of(0), after_s=0.5, hold_s=4.0),
        once(Kill(), on=leader_of(0), after_s=3.0, hold_s=1.5),
    ),
    producers=ProducerSettings(acks="1"),
)
# Answers are lost for three times as long as the client waits for one, so it sends records again that are already written. A
# copy may be written behind later records.
RETRY_DUPLICATES = Scenario(
    name="control-retry_duplicates",
    mode=Mode.AT_LEAST_ONCE,
    judged_as=Mode.EXACTLY_ONCE,
    expected=Verdict.VIOLATED,
    requires={"duplicated": 1},
    tolerates=("reordered", "key_reordered"),
    control=True,
    hazard="retry_duplicates",
    schedule=once(Sever(shape="answers"), on=every_broker(), after_s=0.5, hold_s=3.0),
    producers=ProducerSettings(request_timeout_ms=1000, extra={"request.timeout.ms": 1000}),
)
# The run is judged as read_committed, but the readers are configured otherwise, by `extra`. Aborted records are flushed before
# the abort, and the group reads to the end of the log, so each of them is read, some before their transaction ends.
ABORTED_UNCOMMITTED = Scenario(
    name="control-aborted_uncommitted",
    mode=Mode.EXACTLY_ONCE,
    expected=Verdict.VIOLATED,
    requires={"aborted_read": 1},
    tolerates=("premature_read",),
    control=True,
    hazard="aborted_uncommitted",
    produce_s=3.0,
    producers=ProducerSettings(aborted_share=0.8),
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
    """Return the scenarios with seeds derived from `seed`, a different one for each."""
    return [replace(s, seed=seed * 100 + number) for number, s in enumerate(scenarios)]
