"""A group has lost its committed offsets while its members were away, and begins at the end: what came meanwhile is not read.

Offsets expire when a group has had no members for offsets.retention.minutes (seven days by default), and an operator can delete
them. A new group that dies before its first commit is in the same state.
"""

from __future__ import annotations

from faults.delete_offsets import DeleteOffsets
from faults.kill_worker import KillWorker
from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings, Scenario
from harness.schedule import together
from harness.targets import consumer, leader_of
from suites.scenarios.hazards import Hazard, Kind, safe_way

UNSAFE = Scenario(
    name="control-offsets_expired",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    # The offsets can be deleted only when the session of the dead member has ended: it is away for seconds.
    requires={"undelivered": 100},
    tolerates=("overcommitted", "skipped"),
    control=True,
    hazard="offsets_expired",
    schedule=together((KillWorker(), consumer(1)), (DeleteOffsets(), leader_of(0)), after_s=0.5, hold_s=0.5),
    consumers=ConsumerSettings(members=1, session_timeout_ms=6000, reset="latest"),
)
hazard = Hazard(
    title="The committed offsets of a group are gone, and it begins at the end",
    kind=Kind.CONSUMERS,
    at_risk="groups with auto.offset.reset=latest that are stopped for longer than offsets.retention.minutes",
    cure="Set auto.offset.reset=earliest, and offsets.retention.minutes above the longest time that a group may be stopped.",
    sources=("KIP-186", "KIP-211"),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, consumers=ConsumerSettings(members=1, session_timeout_ms=6000, reset="earliest")),
)
