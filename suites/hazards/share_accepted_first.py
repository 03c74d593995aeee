"""A member of a share group accepts records before it works on them: if it dies in between, no member gets them again."""

from __future__ import annotations

from faults.at_moment import AtMoment
from faults.kill_worker import KillWorker
from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario, Timings
from harness.targets import consumer
from harness.workers.breakpoints import Moment
from suites.scenarios.groups import BROKERS_FOR_SHARE_GROUPS
from suites.scenarios.hazards import Hazard, Kind, Needs, safe_way
from suites.scenarios.pipelines import held

NEEDS = Needs(settings=BROKERS_FOR_SHARE_GROUPS)
LOCKED = Timings(
    drain_limit_s=120.0
)  # what a dead member did not accept is given out again when its lock has expired
UNSAFE = Scenario(
    name="control-share_accepted_first",
    mode=Mode.AT_MOST_ONCE,
    judged_as=Mode.AT_LEAST_ONCE,
    workload="share_group",
    expected=Verdict.VIOLATED,
    requires={"undelivered": 1},
    control=True,
    hazard="share_accepted_first",
    # In the unsafe way its records are accepted by then, in the safe way they are not.
    schedule=held(AtMoment(KillWorker().describe(), Moment.BEFORE_WORK.value, "consumer-1"), consumer(1)),
    producers=ProducerSettings(acks="all", retries=100, records_per_s=200),
    consumers=ConsumerSettings(members=2),
    timings=LOCKED,
)
SAFE = safe_way(
    UNSAFE, mode=Mode.AT_LEAST_ONCE, judged_as=None, producers=ProducerSettings(records_per_s=200)
)
hazard = Hazard(
    title="Records of a share group that are accepted before the work, and a member that dies in between",
    kind=Kind.SHARE_GROUPS,
    at_risk="share consumers that hand records to other threads and poll again: the default acknowledgement mode accepts them then",
    cure="Set share.acknowledgement.mode=explicit, accept each record after its work, and make the work safe to repeat.",
    sources=("KIP-932",),
    needs=NEEDS,
    quick=True,
    unsafe=UNSAFE,
    safe=SAFE,
)
