"""Two replicas are stopped, the last one loses power: without eligible leader replicas it leads again, with less than the others have.

All copies had the records when they were acked. The last one has never fsynced them, and is the only one in sync. With eligible
leader replicas (KIP-966) the controller remembers who else has everything that was acked, and that the last one ended unclean.
"""

from __future__ import annotations

from faults.lower_feature import LowerFeature
from faults.power_loss import PowerLoss
from faults.restart import Restart
from harness.contracts import Mode, Verdict
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import together
from harness.targets import every_broker, follower_of, leader_of
from suites.scenarios.hazards import DISKS_AND_CLOCKS, Hazard, Kind, safe_way

# Each begins when the one before has moved its leaders; the last one that went down returns first.
_ONE_BY_ONE = ((Restart(), follower_of(0)), (Restart(), follower_of(0)), (PowerLoss(), leader_of(0)))
UNSAFE = Scenario(
    name="control-last_replica_standing",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    # Other records get the offsets of the lost ones, readers that had read those go back or miss records, and the
    # committed offsets of the group are lost in the same way.
    tolerates=("offset_conflict", "rewound", "skipped", "undelivered", "overcommitted"),
    control=True,
    hazard="last_replica_standing",
    producers=ProducerSettings(records_per_s=300),  # everything is lost: enough to find
    schedule=together((LowerFeature(), every_broker()), *_ONE_BY_ONE, after_s=0.5, hold_s=1.0),
)
hazard = Hazard(
    title="The last replica in sync loses power and leads again",
    kind=Kind.ELIGIBLE_LEADERS,
    at_risk="clusters before Kafka 4.1, and newer ones with eligible.leader.replicas.version=0, as after an upgrade without raising it",
    cure="Set the feature eligible.leader.replicas.version to 1 (kafka-features.sh), with min.insync.replicas=2.",
    sources=("KIP-966",),
    needs=DISKS_AND_CLOCKS,
    quick=True,
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, schedule=together(*_ONE_BY_ONE, after_s=0.5, hold_s=1.0)),
)
