"""The leader dies, gets an empty disk and starts again: at once, after its session has ended, or beside a change of the controller."""

from __future__ import annotations

from faults.kill import Kill
from faults.wipe_disk import WipeDisk
from harness.hunts.hunt import Hunt
from harness.scenario import Scenario
from harness.schedule import Schedule, once, overlapping
from harness.targets import active_controller, leader_of
from suites.hunts import _replicas

# The controller dies while the leader is down, and the leader registers with the next one.
_BESIDE_A_NEW_CONTROLLER = overlapping(
    once(WipeDisk(quick=True, new_disk=True, back=False), on=leader_of(0), after_s=0.5, hold_s=0.2),
    once(Kill(), on=active_controller(), after_s=0.6, hold_s=2.0),
)
WAYS: tuple[Schedule, ...] = (
    once(WipeDisk(quick=True, new_disk=True), on=leader_of(0), after_s=0.5, hold_s=1.0),
    once(WipeDisk(quick=True), on=leader_of(0), after_s=0.5, hold_s=1.0),
    # Back after its session has ended.
    once(
        WipeDisk(quick=True, new_disk=True, back=False),
        on=leader_of(0),
        after_s=0.5,
        hold_s=_replicas.SESSION_S + 5.0,
    ),
    _BESIDE_A_NEW_CONTROLLER,
)


def scenario(seed: int) -> Scenario:
    return _replicas.scenario("wiped_leader", WAYS[seed % len(WAYS)], seed)


hunt = Hunt(
    title="Is an acked record lost when the leader's disk is replaced and it starts again quickly?",
    suspicion="The controller may take the new incarnation for the old one, which was in sync, and let it lead with an empty log.",
    sources=_replicas.SOURCES,
    scenario=scenario,
    shows=_replicas.DURABILITY,
    runs=12,
    not_tried="combined nodes, several log folders, releases before 4.3, controllers that lose their disks.",
    needs=_replicas.sessions(_replicas.SESSION_S),
    log_lines=_replicas.LOG_LINES,
    page="docs/findings/KAFKA-14139.md",
)
