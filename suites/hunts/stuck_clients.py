"""Clients lose all brokers in several ways, everything heals, and the clients have to go on."""

from __future__ import annotations

from faults.flaky_link import FlakyLink
from faults.kill import Kill
from faults.pause import Pause
from faults.sever import Sever
from harness.contracts import Mode
from harness.hunts.hunt import STUCK, Hunt
from harness.scenario import Scenario, Timings
from harness.schedule import Schedule, once, sequence
from harness.targets import every_broker, group_coordinator, leader_of

WAYS: tuple[Schedule, ...] = (
    sequence(
        once(Sever(shape="clients"), on=every_broker(), after_s=0.5, hold_s=5.0),
        once(Kill(), on=group_coordinator(), after_s=0.5, hold_s=1.0),
        pause_s=0.3,
    ),
    once(FlakyLink(kind="half_open", lanes="clients"), on=every_broker(), after_s=0.5, hold_s=5.0),
    sequence(
        once(Pause(), on=group_coordinator(), after_s=0.5, hold_s=5.0),
        once(Sever(shape="clients"), on=leader_of(0), after_s=0.5, hold_s=5.0),
        pause_s=0.3,
    ),
)


def scenario(seed: int) -> Scenario:
    return Scenario(
        name="hunt-stuck_clients",
        mode=Mode.AT_LEAST_ONCE,
        schedule=WAYS[seed % len(WAYS)],
        timings=Timings(recovery_limit_s=120.0, drain_limit_s=180.0),
        seed=seed,
    )


hunt = Hunt(
    title="Do librdkafka clients stay stuck after everything has healed?",
    suspicion="A client may keep a coordinator or a connection that is gone, and never look it up again.",
    sources=("librdkafka#5456", "librdkafka#5511"),
    scenario=scenario,
    shows=(STUCK,),
    runs=9,
    stuck="no progress after|was not drained|did not read to the end",
    not_tried="transactional pipelines, which suites/hazards/test_lost_coordinator.py covers; TLS; hundreds of brokers.",
)
