"""Workers are made as the scenario sets them; options that the client does not have are refused before a run begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.clusters.memory import MemoryCluster
from harness.contracts import ConsumerOptions, Mode
from harness.errors import UsageError
from harness.execute import execute
from harness.ledger.journal import EventLog
from harness.ledger.rundir import RunDir
from harness.scenario import ConsumerSettings, PipelineSettings, Scenario
from harness.workers.worker import Worker
from harness.workloads.produce_consume import ProduceConsume

STICKY = "assignor=sticky: librdkafka does not have it; choose one of range, roundrobin, cooperative-sticky"


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        (
            Scenario(name="x", mode=Mode.AT_LEAST_ONCE, consumers=ConsumerSettings(assignor="sticky")),
            STICKY,
        ),
        (
            Scenario(
                name="x",
                mode=Mode.AT_LEAST_ONCE,
                workload="transactional_copy",
                pipeline=PipelineSettings(consumer=ConsumerOptions(assignor="sticky")),
            ),
            STICKY,
        ),
        (Scenario(name="x", mode=Mode.AT_LEAST_ONCE, client="lying", consumers=ConsumerSettings(assignor="sticky")), STICKY),
    ],
)  # fmt: skip
def test_an_option_that_the_client_does_not_have_is_refused(
    scenario: Scenario, says: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=says):
        execute(scenario, MemoryCluster(tmp_path / "cluster"), tmp_path / "runs")
    assert not list((tmp_path / "runs").rglob("*.json"))


@pytest.mark.parametrize(
    "consumers",
    [
        ConsumerSettings(assignor="roundrobin", group_protocol="classic"),
        ConsumerSettings(extra={"partition.assignment.strategy": "roundrobin", "group.protocol": "classic"}),
    ],
)
def test_a_fault_that_joins_the_group_learns_how_its_members_are_set(
    consumers: ConsumerSettings, tmp_path: Path
) -> None:
    run = RunDir.create(tmp_path, "x")
    events = EventLog(run.ledger / "harness.events", "harness")
    scenario = Scenario(name="x", mode=Mode.AT_LEAST_ONCE, consumers=consumers)
    for spec in ProduceConsume(scenario, "t", "g").roles():
        worker = Worker(spec, run, events)
        shared = {"partition.assignment.strategy": "roundrobin", "group.protocol": "classic"}
        assert worker.client_settings == (shared if spec.reads else {})
        assert worker.stays_in_group == spec.reads
