"""Make the workers of a run from the roles of its workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.contracts import Cluster, Lane, TopicSettings
from harness.ledger.journal import EventLog
from harness.ledger.message import run_number
from harness.ledger.rundir import RunDir
from harness.scenario import Scenario
from harness.workers.pool import OBSERVER, Worker
from harness.workers.skewed_worker import ClockedWorker, workers_with_clocks
from harness.workers.standby import Standby


def make_workers(
    scenario: Scenario,
    cluster: Cluster,
    run: RunDir,
    roles: Sequence[Mapping[str, Any]],
    events: EventLog,
    standby: Standby | None,
) -> list[Worker]:
    """Return one worker for each role, not started yet."""
    clocked = workers_with_clocks(scenario.schedule)
    specs = [_spec(scenario, cluster, run, role) for role in roles]
    settings = [cluster.client_settings(Lane(spec["lane"])) for spec in specs]
    return [
        ClockedWorker(spec, run, events, security)
        if spec["name"] in clocked
        else Worker(spec, run, events, security, standby)
        for spec, security in zip(specs, settings, strict=True)
    ]


def _spec(scenario: Scenario, cluster: Cluster, run: RunDir, role: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        **role,
        "client": scenario.client,
        "client_version": scenario.client_version,
        "run": run_number(run.run_id),
        "bootstrap": cluster.bootstrap_servers(Lane(role["lane"])),
    }


def observer_roles(
    scenario: Scenario, topic: str, more_topics: Mapping[str, TopicSettings]
) -> list[Mapping[str, Any]]:
    """Return two readers beside the group, one of each isolation, if the scenario asks for them."""
    topics = {topic: scenario.topic, **more_topics}
    return [
        {
            "role": OBSERVER,
            "name": f"{OBSERVER}-{reads}",
            "lane": Lane.CONSUME,
            "topics": [{"name": name, "partitions": made.partitions} for name, made in topics.items()],
            "mode": scenario.mode,
            "isolation": f"read_{reads}",
        }
        for reads in (("committed", "uncommitted") if scenario.observed else ())
    ]
