"""All three brokers are killed, and the last one to go gets an empty disk: two whole copies of every record are left."""

from __future__ import annotations

from faults.kill import Kill
from faults.wipe_disk import WipeDisk
from harness.hunts.hunt import Hunt
from harness.scenario import Scenario
from harness.schedule import once, overlapping
from harness.targets import follower_of, leader_of
from suites.hunts import _replicas

# The followers are back seconds later, with everything that was acked.
SCHEDULE = overlapping(
    once(Kill(), on=follower_of(0), after_s=0.5, hold_s=8.0),
    once(Kill(), on=follower_of(0), after_s=0.6, hold_s=6.0),
    once(WipeDisk(new_disk=True), on=leader_of(0), after_s=0.7, hold_s=2.0),
)


def scenario(seed: int) -> Scenario:
    return _replicas.scenario("wiped_after_outage", SCHEDULE, seed)


hunt = Hunt(
    title="Are acked records lost when all brokers were killed and one of them loses its disk?",
    suspicion=(
        "No broker shut down cleanly, so no replica is eligible when they return; the last leader is then elected, even if its "
        "log is the empty one."
    ),
    sources=_replicas.SOURCES,
    scenario=scenario,
    shows=_replicas.DURABILITY,
    runs=6,
    not_tried="clean shutdowns of the others, a leader that is not the last to go, unclean.recovery.strategy.",
    log_lines=_replicas.LOG_LINES,
    page="docs/findings/KAFKA-14139.md",
)
