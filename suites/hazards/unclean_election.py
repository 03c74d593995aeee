"""A replica that has missed records is elected while all brokers that have them are down: the records are gone."""

from __future__ import annotations

from faults.unclean_election import UncleanElection
from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import follower_of
from suites.scenarios.fault_cases import TRUNCATED
from suites.scenarios.hazards import Hazard, Kind, safe_way

# The fault measures that the log of the new leader ends before offsets that the others had reached.
UNSAFE = Scenario(
    name="control-unclean_election",
    mode=Mode.AT_LEAST_ONCE,
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    tolerates=TRUNCATED,
    control=True,
    hazard="unclean_election",
    topic=TopicSettings(min_insync_replicas=1),
    schedule=once(UncleanElection(), on=follower_of(0), after_s=0.5, hold_s=1.0),
)
hazard = Hazard(
    title="An unclean election makes a replica the leader that has missed acknowledged records",
    kind=Kind.BROKER_DURABILITY,
    at_risk="topics with unclean.leader.election.enable=true, and operators who elect an unclean leader to end an outage",
    cure="Keep unclean.leader.election.enable=false, and wait for a broker of the last in-sync set instead of electing.",
    sources=("KIP-106", "KIP-460"),
    unsafe=UNSAFE,
    # The same brokers go down, and the partition waits for them without a leader.
    safe=safe_way(
        UNSAFE, schedule=once(UncleanElection(elect=False), on=follower_of(0), after_s=0.5, hold_s=1.0)
    ),
)
