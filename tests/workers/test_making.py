"""A run that its client or its brokers cannot do is refused before it begins, and leaves no folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.clusters.memory import MemoryCluster
from harness.contracts import ConsumerOptions, Mode
from harness.errors import UsageError
from harness.execute import execute
from harness.scenario import ConsumerSettings, PipelineSettings, Scenario

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
