"""Shared by hunts that wipe disks: the cluster, the load, and the pattern of log lines about registrations and in-sync sets."""

from __future__ import annotations

from harness.claims.claim import ClusterNeeds
from harness.contracts import Mode
from harness.scenario import ProducerSettings, Scenario, Timings
from harness.schedule import Schedule

# A broker is back while the controller still waits for its heartbeats: the usual session of test clusters is shorter than the
# start of a JVM, above all on a busy machine.
SESSION_S = 45
SHORTER_S = 20  # where a run waits for the end of sessions


def sessions(seconds: int) -> ClusterNeeds:
    return ClusterNeeds(settings={"broker.session.timeout.ms": str(seconds * 1000)})


LOG_LINES = (
    r"BrokerLifecycleManager|Fencing broker|unfence|[Rr]egist(ered|ering|ration)|Shrinking ISR|Expanding ISR|ISR updated|"
    r"[Tt]runcat|UNCLEAN|[Uu]nclean|starts at leader epoch|Found directory|last known|ELR"
)
SOURCES = ("KAFKA-14139", "KIP-903", "KIP-966")
DURABILITY = ("lost", "offset_conflict")


def scenario(name: str, schedule: Schedule, seed: int) -> Scenario:
    """Return a run with acks=all, three replicas and min.insync.replicas=2, which must lose nothing.

    No record expires: expired ones make duplicates (suites/hunts/timeout_duplicates.py).
    """
    return Scenario(
        name=f"hunt-{name}",
        mode=Mode.IDEMPOTENT,
        producers=ProducerSettings(records_per_s=500, delivery_timeout_ms=300_000),
        schedule=schedule,
        timings=Timings(
            recovery_limit_s=120.0, flush_limit_s=90.0, drain_limit_s=120.0, final_read_limit_s=120.0
        ),
        seed=seed,
    )
