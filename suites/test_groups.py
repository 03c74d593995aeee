"""Groups that change under load: members leave, join, stall, crash and pause, with every assignment protocol.

Incorrect members are hazards (`suites/hazards`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.campaign import Campaign, Execute
from harness.contracts import Cluster, Verdict
from harness.scenario import Scenario
from suites.scenarios.groups import BROKERS_FOR_GROUPS, GROUP_RUNS
from suites.support.sessions import started_campaign, started_cluster

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Brokers that detect dead members of the consumer protocol as soon as those of the classic protocol."""
    with started_cluster(request.config, settings=BROKERS_FOR_GROUPS) as started:
        yield started


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Campaign]:
    command = "pytest suites/test_groups.py -k {name} --seed {seed}"
    with started_campaign(request.config, cluster, command) as campaign:
        yield campaign


@pytest.mark.parametrize("scenario", GROUP_RUNS, ids=lambda s: s.name)
def test_nothing_is_lost_between_members(execute: Execute, scenario: Scenario) -> None:
    result = execute(scenario)
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.reconciled["coverage"]["rebalances"] > scenario.consumers.members, (
        "no member joined or left"
    )
    assert result.reconciled["compared"]["two_owners"] > 0
