"""Make the workers of a run from the roles of its workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness import registry
from harness.contracts import (
    Checking,
    Cluster,
    Lane,
    MemberSpec,
    SenderSpec,
    TopicSettings,
    TopicToRead,
    WorkerSpec,
)
from harness.errors import UsageError
from harness.ledger.journal import EventLog
from harness.ledger.message import run_number
from harness.ledger.rundir import RunDir
from harness.scenario import Scenario
from harness.workers.roles.observer import ObserverRoleSpec
from harness.workers.skewed_worker import ClockedWorker, workers_with_clocks
from harness.workers.standby import Standby
from harness.workers.worker import Worker

LONGEST_TOPIC = 249  # the limit of brokers


def make_workers(
    scenario: Scenario,
    cluster: Cluster,
    run: RunDir,
    roles: Sequence[WorkerSpec],
    events: EventLog,
    standby: Standby | None,
) -> list[Worker]:
    """Return one worker for each role, not started yet."""
    clocked = workers_with_clocks(scenario.schedule)
    specs = [_spec(scenario, cluster, run, role) for role in roles]
    settings = [cluster.client_settings(spec.lane) for spec in specs]
    return [
        ClockedWorker(spec, run, events, security)
        if spec.name in clocked
        else Worker(spec, run, events, security, standby)
        for spec, security in zip(specs, settings, strict=True)
    ]


def refuse_unusable(scenario: Scenario, topics: Sequence[str], roles: Sequence[WorkerSpec]) -> None:
    """Raise UsageError for a topic whose name is too long, and for an option that the client library does not have."""
    for name in topics:
        if len(name) > LONGEST_TOPIC:
            raise UsageError(
                f"{name}: topic names have at most {LONGEST_TOPIC} characters; choose a shorter name or --prefix"
            )
    client = registry.load("client", scenario.client)
    if not isinstance(client, Checking):
        return
    for role in roles:
        if isinstance(role, SenderSpec):
            client.check_options(role.producer)
        if isinstance(role, MemberSpec):
            client.check_options(role.consumer)


def _spec(scenario: Scenario, cluster: Cluster, run: RunDir, role: WorkerSpec) -> WorkerSpec:
    return replace(
        role,
        client=scenario.client,
        client_version=scenario.client_version,
        run=run_number(run.run_id),
        bootstrap=cluster.bootstrap_servers(role.lane),
    )


def observer_roles(
    scenario: Scenario, topic: str, more_topics: Mapping[str, TopicSettings]
) -> list[ObserverRoleSpec]:
    """Return two readers beside the group, one of each isolation, if the scenario asks for them."""
    topics = {topic: scenario.topic, **more_topics}
    return [
        ObserverRoleSpec(
            name=f"observer-{reads}",
            lane=Lane.CONSUME,
            topics=tuple(TopicToRead(name, made.partitions) for name, made in topics.items()),
            mode=scenario.mode,
            isolation=f"read_{reads}",
        )
        for reads in (("committed", "uncommitted") if scenario.observed else ())
    ]
