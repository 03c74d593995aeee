"""An in-sync follower gets an empty disk and starts again; then the leader dies, so that the follower may be elected."""

from __future__ import annotations

from faults.kill import Kill
from faults.wipe_disk import WipeDisk
from harness.hunts.hunt import Hunt
from harness.scenario import Scenario
from harness.schedule import Schedule, once, overlapping
from harness.targets import follower_of, leader_of
from suites.hunts import _replicas

WAYS: tuple[Schedule, ...] = (
    # The leader dies as soon as the wiped follower is back.
    overlapping(
        once(WipeDisk(quick=True, new_disk=True), on=follower_of(0), after_s=0.5, hold_s=4.0),
        once(Kill(), on=leader_of(0), after_s=0.6, hold_s=2.0),
    ),
    # The same without a third broker: only the leader and the wiped follower were in sync.
    overlapping(
        once(Kill(), on=follower_of(0), after_s=0.5, hold_s=6.0),
        once(WipeDisk(quick=True, new_disk=True), on=follower_of(0), after_s=0.6, hold_s=4.0),
        once(Kill(), on=leader_of(0), after_s=0.7, hold_s=2.0),
    ),
    # All are down, and the wiped one, an eligible leader replica by then, returns first.
    overlapping(
        once(Kill(), on=follower_of(0), after_s=0.5, hold_s=12.0),
        once(WipeDisk(new_disk=True, back=False), on=follower_of(0), after_s=0.6, hold_s=2.0),
        once(Kill(), on=leader_of(0), after_s=0.7, hold_s=6.0),
    ),
)


def scenario(seed: int) -> Scenario:
    return _replicas.scenario("wiped_follower", WAYS[seed % len(WAYS)], seed)


hunt = Hunt(
    title="Is an acked record lost when an in-sync follower's disk is replaced and the leader dies?",
    suspicion="The wiped follower may still be in the in-sync set, or among the eligible leader replicas, and be elected with an empty log.",
    sources=_replicas.SOURCES,
    scenario=scenario,
    shows=_replicas.DURABILITY,
    runs=12,
    not_tried="combined nodes, several log folders, releases before 4.3, eligible.leader.replicas.version=0.",
    needs=_replicas.sessions(_replicas.SHORTER_S),
    log_lines=_replicas.LOG_LINES,
    page="docs/findings/KAFKA-14139.md",
)
